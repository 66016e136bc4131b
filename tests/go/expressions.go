// Writes the table that crates/ops compares its reading of Go's expressions with: for each expression whether Go
// accepts it, and where it matches in each text.
//
// usage: go run tests/go/expressions.go <tests/go/expressions.txt >crates/ops/src/go_regex/table.jsonl
//
// Any line of the input that is not empty and does not begin with "# " is an expression.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

var texts = []string{
	"",
	"a",
	"aaa bbb ccc",
	"func main() { return interface{}{} }",
	"path=${HOME}/x && y -- z ~~ w",
	"{{ .Name }} {\"key\": 12, \"K\": [1, 2]}",
	"c++ a** foo.bar(x)[0] <b>bold</b>",
	"ſ \u212a Straße ÀÉ αβΓ Ελλάδα 漢字 ✓ 😀",
	"tab\tvt\x0bff\x0ccr\rnbsp\u00a0end",
	"2026-11-18T01:02:03Z ERROR [main] id=0x1F user_name=Bob_42",
	"aAbB \\Q[x]\\E ^$.|?*+(){}[] - ] : _",
	"abcabcabc xyzzy foobar foo1 bar22 baz333",
	"x{2} x{,3} a{01} {} {1,2} xx xxx",
}

type row struct {
	Expression string    `json:"expression"`
	Refused    bool      `json:"refused,omitempty"`
	Spans      [][][]int `json:"spans,omitempty"`
}

func judge(expression string) row {
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return row{Expression: expression, Refused: true}
	}
	spans := make([][][]int, len(texts))
	for at, text := range texts {
		spans[at] = compiled.FindAllStringIndex(text, -1)
		if spans[at] == nil {
			spans[at] = [][]int{}
		}
	}
	return row{Expression: expression, Spans: spans}
}

func write(value any) {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	write(texts)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		line := lines.Text()
		if line != "" && !strings.HasPrefix(line, "# ") {
			write(judge(line))
		}
	}
}

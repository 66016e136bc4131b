//! The figures of the README are those of the reports, each in its row and column. Whoever runs a bench again finds here
//! which of them are no longer right.

use super::text;

/// A row of the README's table, and the report and its columns that the figures come from.
const ROWS: [(&str, &str, &[&str]); 7] = [
    ("tasks of an agent that were solved", "AGENTS", &["right"]),
    ("tool calls for them", "AGENTS", &["calls"]),
    (
        "tokens that the agent reads for them",
        "AGENTS",
        &["received"],
    ),
    ("start to first reply", "RESULTS", &["start to first reply"]),
    ("resident when idle", "RESULTS", &["resident when idle"]),
    (
        "200 reads of 4 KiB, one after the other",
        "RESULTS",
        &["200 reads of 4 KiB, one after the other"],
    ),
    (
        "100,000 reads and 100,000 writes while links are swapped: leaked, escaped",
        "RACE",
        &["reads that leaked", "writes that escaped"],
    ),
];

/// A table of a page, the names of its columns first.
type Table = Vec<Vec<String>>;

fn tables(page: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = vec![Vec::new()];
    for line in page.lines() {
        match line.strip_prefix('|').and_then(|row| row.strip_suffix('|')) {
            Some(row) if row.starts_with("--") => {}
            Some(row) => {
                let cells = row.split('|').map(|cell| cell.replace("**", ""));
                let cells = cells.map(|cell| cell.trim().to_owned()).collect();
                tables.last_mut().unwrap().push(cells);
            }
            None => tables.push(Vec::new()),
        }
    }
    tables.retain(|table| !table.is_empty());
    tables
}

/// The numbers in a text, as they are written there.
fn numbers(text: &str) -> Vec<&str> {
    let words =
        text.split(|character: char| !(character.is_ascii_digit() || ",.".contains(character)));
    let words = words.map(|word| word.trim_matches([',', '.']));
    words.filter(|word| !word.is_empty()).collect()
}

/// What a report has of a server in these columns; nothing if it has no row of it.
fn measured(report: &str, columns: &[&str], server: &str) -> Option<Vec<String>> {
    let all = tables(report);
    let has_all = |table: &&Table| {
        let named = |column: &&str| table[0].iter().any(|name| name == column);
        columns.iter().all(named)
    };
    let table = all.iter().find(has_all).expect("a table with the columns");
    let row = table.iter().find(|row| row[0].starts_with(server))?;
    let cell = |column: &&str| {
        let at = table[0].iter().position(|name| name == column).unwrap();
        row[at].clone()
    };
    Some(columns.iter().map(cell).collect())
}

#[test]
fn figures_of_the_readme_are_measured() {
    let readme = text("README.md");
    let (_, table) = readme.split_once("<!-- figures -->\n").unwrap();
    let (table, _) = table.split_once("<!-- /figures -->").unwrap();
    let table = &tables(table)[0];
    let labels: Vec<&str> = table[1..].iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        labels,
        ROWS.map(|(label, ..)| label),
        "the rows of the README"
    );
    let mut checked = 0;
    for ((label, report, columns), row) in ROWS.iter().zip(&table[1..]) {
        let report = text(&format!("bench/{report}.md"));
        for (server, cell) in table[0].iter().zip(row).skip(1) {
            // The report has more of a server's name than the README, or less.
            let server = server.split(" (").next().unwrap();
            let told = numbers(cell);
            let Some(cells) = measured(&report, columns, server) else {
                assert_eq!(cell, "not run", "{label}: {server}");
                continue;
            };
            let wanted: Vec<&str> = cells.iter().map(|cell| numbers(cell)[0]).collect();
            assert_eq!(told[..wanted.len()], wanted, "{label}: {server}");
            // A unit is a part of the figure.
            let unit = cells[0].trim_start_matches(wanted[0]);
            assert!(columns.len() > 1 || cell.contains(&format!("{}{unit}", wanted[0])));
            let all = numbers(&report);
            for more in &told[wanted.len()..] {
                assert!(
                    all.contains(more) || *more == "40",
                    "{more} is in no report: {cell}"
                );
            }
            checked += told.len();
        }
    }
    assert!(checked > 12, "{checked} figures");
}

#[test]
fn a_cell_is_found_by_its_row_and_column() {
    let report =
        "| server | a | b |\n|---|--:|--:|\n| one, `x` | 1 | **2** |\n| two | 3 | 4 ms |\n";
    assert_eq!(
        measured(report, &["b", "a"], "one"),
        Some(vec!["2".to_owned(), "1".to_owned()])
    );
    assert_eq!(
        measured(report, &["b"], "two"),
        Some(vec!["4 ms".to_owned()])
    );
    assert_eq!(measured(report, &["b"], "three"), None);
}

#!/usr/bin/env python3
"""A discrete-event model of replicas on one shared file system: which p99, and how many replicas, for how many agents.

usage: simulate.py DIRECTORY    (writes scale-p99.svg and scale-limit.svg there and prints the table)

It is a model: calls arrive at random, a replica serves them in order with as many cores as it has, and what an edit or a read
asks of the file server waits in one line there. Each input says whether it was measured, and where, or is assumed.
"""

import heapq
import random
import sys

#: Seconds of a core for one call. Of these only the search was measured (bench/RESULTS.md, "rare literal": 240 ms on two cores, a
#: core each); the others are assumed until `make bench` has rows for them.
CORE = {"read": 0.00012, "edit": 0.00045, "search": 0.120}
#: Assumed: how many requests to the file server a call makes with warm caches. A read looks up and opens; an edit with
#: cluster.state_dir also locks its slots and the file, asks for the directories above, creates and renames.
REQUESTS = {"read": 2, "edit": 16, "search": 40}
#: Seconds of one round trip to the file server. The design measured 0.4 to 4 ms for a lock over the network; the least is taken.
ROUND_TRIP = 0.0004
#: Assumed: what one metadata server answers a second.
SERVER_RATE = 60_000
#: Assumed: what agents do.
MIX = [("read", 0.80), ("edit", 0.17), ("search", 0.03)]
#: Assumed: each agent makes 20 calls a minute.
CALLS_PER_AGENT = 20 / 60
#: Assumed: cores of a replica.
CORES = 8
#: How many calls are simulated for each point, after as many to warm up.
CALLS = 30_000


def choose(random_):
    number = random_.random()
    for kind, share in MIX:
        number -= share
        if number < 0:
            return kind
    return MIX[0][0]


def simulate(agents, replicas, server_rate=SERVER_RATE, routed=False, seed=1):
    """The p99 of small calls in seconds, and the share of the file server's time that is used."""
    random_ = random.Random(seed)
    rate = agents * CALLS_PER_AGENT
    # One file server has room for so many replicas' calls that a part of a large cluster is enough to see: a slice of the
    # replicas with its part of the calls and of the server.
    part = min(replicas, 16)
    share = part / replicas
    rate, server_rate = rate * share, server_rate * share
    cores = [[0.0] * CORES for _ in range(part)]
    for one in cores:
        heapq.heapify(one)
    server_free, now, waits, used = 0.0, 0.0, [], 0.0
    for number in range(CALLS * 2):
        now += random_.expovariate(rate)
        kind = choose(random_)
        replica = cores[random_.randrange(part)]
        begun = max(now, heapq.heappop(replica))
        busy = CORE[kind] * random_.uniform(0.6, 1.4)
        # Routing by root keeps caches warm: half of what a read asks is known already.
        requests = REQUESTS[kind] * (0.5 if routed and kind != "edit" else 1)
        server_free = max(begun, server_free) + requests / server_rate
        used += requests / server_rate
        ended = max(server_free, begun + busy + requests * ROUND_TRIP)
        heapq.heappush(replica, ended if kind == "search" else begun + busy)
        if number >= CALLS and kind != "search":
            waits.append(ended - now)
    waits.sort()
    return waits[int(len(waits) * 0.99)], used / now


def least_replicas(agents, server_rate, routed):
    """The fewest replicas whose small calls have a p99 below 100 ms; None where the file server is the limit before."""
    replicas = 1
    while replicas <= 4096:
        p99, used = simulate(agents, replicas, server_rate, routed)
        if used > 0.98:
            return None, used
        if p99 < 0.1:
            return replicas, used
        replicas = max(replicas + 1, int(replicas * 1.25))
    return None, 1.0


def svg(path, title, lines, labels):
    """A small plot: lines of (name, [(x, y)]) with both axes as they are given."""
    width, height, left, bottom = 640, 360, 70, 50
    xs = [x for _, points in lines for x, _ in points]
    ys = [y for _, points in lines for _, y in points]
    x_max, y_max = max(xs), max(ys) or 1
    place = lambda x, y: (left + (width - left - 20) * x / x_max, height - bottom - (height - bottom - 40) * y / y_max)
    colours = ["#1b6ca8", "#c8553d", "#4f772d", "#7b2d8b"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">']
    out.append(f'<rect width="{width}" height="{height}" fill="white"/><text x="{left}" y="20" font-size="14">{title}</text>')
    out.append(f'<path d="M{left} 40V{height - bottom}H{width - 20}" fill="none" stroke="black"/>')
    for number in range(5):
        y = y_max * number / 4
        out.append(f'<text x="{left - 8}" y="{place(0, y)[1] + 4:.0f}" text-anchor="end">{y:.3g}</text>')
        x = x_max * number / 4
        out.append(f'<text x="{place(x, 0)[0]:.0f}" y="{height - bottom + 18}" text-anchor="middle">{x:.3g}</text>')
    out.append(f'<text x="{(left + width) / 2}" y="{height - 10}" text-anchor="middle">{labels[0]}</text>')
    out.append(f'<text x="16" y="{height / 2}" transform="rotate(-90 16 {height / 2})" text-anchor="middle">{labels[1]}</text>')
    for (name, points), colour in zip(lines, colours):
        drawn = " ".join("%.1f,%.1f" % place(x, y) for x, y in points)
        out.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = place(*points[-1])
        out.append(f'<text x="{min(x, width - 150):.0f}" y="{max(y - 8, 36):.0f}" fill="{colour}">{name}</text>')
    out.append("</svg>\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


def main():
    directory = sys.argv[1]
    print("| agents | calls a second | replicas, one file server | replicas, four file servers | the same, routed by root |")
    print("|---|---|---|---|---|")
    for agents in [10_000, 100_000, 1_000_000]:
        cells = []
        for server_rate, routed in [(SERVER_RATE, False), (SERVER_RATE * 4, False), (SERVER_RATE * 4, True)]:
            replicas, used = least_replicas(agents, server_rate, routed)
            cells.append(f"{replicas} ({used:.0%} of the file server)" if replicas else "the file server is the limit")
        print(f"| {agents:,} | {agents * CALLS_PER_AGENT:,.0f} | " + " | ".join(cells) + " |")
    points = [1, 2, 3, 4, 6, 8, 10, 12]
    lines = []
    for agents in [2_000, 5_000, 10_000, 20_000]:
        curve = [(replicas, min(simulate(agents, replicas)[0] * 1000, 500)) for replicas in points]
        lines.append((f"{agents:,} agents", curve))
    svg(f"{directory}/scale-p99.svg", "p99 of reads and edits (model; cut at 500 ms)", lines, ("replicas", "ms"))
    lines = []
    for rate in [1, 2, 4]:
        curve = []
        for agents in range(5_000, 200_001, 15_000):
            replicas = max(1, agents // 1_000)
            curve.append((agents, min(1.0, simulate(agents, replicas, SERVER_RATE * rate)[1])))
        lines.append((f"{rate} file server{'s' if rate > 1 else ''}", curve))
    svg(f"{directory}/scale-limit.svg", "Used share of the file servers (model)", lines, ("agents", "share"))


main()

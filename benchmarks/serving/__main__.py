"""`python -m benchmarks.serving`: print the tables, as Markdown."""

from __future__ import annotations

from benchmarks.serving import admission, routing


def main() -> None:
    for title, rows in (
        ("Requests that keep their objectives, by the limit before the engine", admission.limits()),
        ("The same of short + of long requests, by the share of the limit for long ones", admission.shares()),
        ("The same behind routers, and p95 of the whole latency", routing.table()),
    ):
        print(f"\n{title}\n", flush=True)
        for number, row in enumerate(rows):
            print(f"| {' | '.join(row)} |", flush=True)
            if number == 0:
                print(f"|{'---|' * len(row)}")


if __name__ == "__main__":
    main()

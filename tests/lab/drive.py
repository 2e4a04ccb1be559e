"""Run the toy study from a process of its own: drive.py STORE ON SETTINGS-AS-JSON. Prints what was found as JSON."""

import json
import sys

if __name__ == "__main__":
    import toys

    import sandlab as sl

    store, on, settings = sys.argv[1:]
    report = sl.run(toys.study, store=store, on=on, settings=json.loads(settings))
    answer = {"path": str(report.path), "jobs": report.about["jobs"], "metrics": report.metrics}
    print(json.dumps(answer))

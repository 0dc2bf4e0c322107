"""One result of a bench as a line of JSON on standard output, as bench/rigs/result_line.h prints it in C++."""

import json


def emit(bench, case, value, unit, peer=None, peer_value=None, **details):
    """`peer_value` is of the same unit and run; None: there is no peer, or it has no figure."""
    print(json.dumps({"bench": bench, "case": case, "value": value, "unit": unit, "peer": peer, "peer_value": peer_value,
                      "ratio": value / peer_value if value is not None and peer_value else None, **details}), flush=True)

#!/usr/bin/env python3
"""One command to a QEMU monitor: qmp.py SOCKET COMMAND [JSON] | qmp.py SOCKET hmp LINE.

Prints what the command returned. A refusal goes to standard error with exit code 1:
the human monitor (savevm, loadvm) answers every refusal with text and no error.
"""

import json
import socket
import sys

TIMEOUT_S = 120


def main() -> int:
    path, command, *rest = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(path)
        stream = connection.makefile("rw")
        stream.readline()  # the greeting
        ask(stream, "qmp_capabilities", {})
        if command == "hmp":
            answer = ask(stream, "human-monitor-command", {"command-line": rest[0]})
            if "return" in answer and "Error" in answer["return"]:
                answer = {"error": {"desc": answer["return"].strip()}}
        else:
            answer = ask(stream, command, json.loads(rest[0]) if rest else {})
    if "error" in answer:
        print(f"{command}: {answer['error']['desc']}", file=sys.stderr)
        return 1
    returned = answer["return"]
    print(returned if isinstance(returned, str) else json.dumps(returned), end="")
    return 0


def ask(stream, command: str, arguments: dict) -> dict:
    stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    stream.flush()
    while True:
        line = stream.readline()
        if not line:
            return {"error": {"desc": "QEMU closed the monitor"}}
        message = json.loads(line)
        if "event" not in message:  # events come in between
            return message


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error}")

"""Prints aider's repo map, for the flag -other of `go run ./repomap/history`.

    python3 aider.py BUDGET... <message

It prints a map of the git work tree in the current directory for each budget in tokens (of four
bytes), with form feeds between the maps. As in aider's chats, files and identifiers that the
message mentions rank higher. It needs the package aider-chat, but no model.
"""

import contextlib
import io
import os
import re
import subprocess
import sys

from aider.repomap import RepoMap


class Model:
    def token_count(self, text):
        return len(text.encode()) / 4


class Console:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None

    def read_text(self, name, silent=False):
        try:
            with open(name, encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return None


def main():
    message = sys.stdin.read()
    root = os.getcwd()
    listing = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout.decode(errors="replace")
    files = [f for f in listing.split("\0") if f and os.path.isfile(f) and not os.path.islink(f)]
    words = set(message.split())
    idents = {i for i in re.split(r"\W+", message) if i}
    long_idents = {i.lower() for i in idents if len(i) >= 5}
    mentioned = {f for f in files if f in words or os.path.basename(f) in words or os.path.splitext(os.path.basename(f))[0].lower() in long_idents}
    maps = []
    for budget in sys.argv[1:]:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            repo = RepoMap(map_tokens=int(budget), root=root, main_model=Model(), io=Console(), map_mul_no_files=1, refresh="always")
            text = repo.get_repo_map([], [os.path.join(root, f) for f in files], mentioned_fnames=mentioned, mentioned_idents=idents)
        maps.append(text or "")
    sys.stdout.write("\f".join(maps))


main()

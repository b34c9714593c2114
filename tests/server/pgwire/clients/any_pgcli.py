"""pgcli itself at the PostgreSQL door, over either database, at a terminal of its own."""
import os
import pty
import re
import select
import sys
import time

LOGIN = dict(part.split("=") for part in sys.argv[1].split())
process, terminal = pty.fork()
if process == 0:
    os.environ.update(TERM="dumb", PAGER="cat", COLUMNS="200", LINES="50", PGSSLMODE="require")
    os.execvp("pgcli", ["pgcli", "-h", LOGIN["host"], "-p", LOGIN["port"], "-U", LOGIN["user"], "-d", LOGIN["dbname"],
                        "--less-chatty", "--pgclirc", os.path.join(os.environ["HOME"], "pgclirc")])
said = ""
heard = ""


def wait_for(pattern, seconds=40):
    """What was said up to the pattern, which is taken."""
    global said, heard
    end = time.monotonic() + seconds
    while not (found := re.search(pattern, said)):
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            text = os.read(terminal, 65536).decode(errors="replace")
            if "\x1b[6n" in text:  # where is the cursor?
                os.write(terminal, b"\x1b[1;1R")
            text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
            said += text
            heard += text
        assert time.monotonic() < end, f"no {pattern} in {said[-2000:]!r}"
    before, said = said[:found.end()], said[found.end():]
    return before


def ask(text):
    os.write(terminal, text.encode() + b"\r")


PROMPT = re.escape(f"{LOGIN['dbname']}> ") + "$"
wait_for(re.escape(LOGIN["dbname"]) + "> ")
ask("\\d points")
wait_for(r"x\s+\| double precision")
ask("SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3 LABEL y INTO by_pgcli;")
wait_for(r"\| by_pgcli\s+\|")
ask("SELECT x FROM points WHERE x <= 2 ORDER BY x TO PREDICT USING by_pgcli;")
wait_for(r"SELECT 2|\(2 rows\)|2 rows in set")
ask("SELECT * FROM points LABEL yy INTO m;")
wait_for(r"no column 'yy'")
ask("SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000 LABEL y INTO m;")
time.sleep(1.5)
os.write(terminal, b"\x03")
wait_for(r"cancell?ed|canceling")
ask("SELECT 40 + 2 AS answer;")
wait_for(r"\| 42\s+\|")
os.write(terminal, b"\x04")
assert "Traceback" not in heard, heard  # of the thread that reads the catalogs for Tab
print("ok")

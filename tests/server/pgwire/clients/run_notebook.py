"""run_notebook.py NOTEBOOK CONNINFO: runs an example notebook, and compares what its cells show with what is kept in it.

Of cells with the tag 'varies' only that they show something; of pictures, that there is one. With UPDATE_GOLDEN set, what
was shown is kept instead.
"""
import os
import sys

import nbformat
from nbclient import NotebookClient

path, login = sys.argv[1:]
os.environ["SLUICE_NOTEBOOK"] = login
os.environ["PGSSLMODE"] = "require"
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # or the kernel warns of its own debugger
kept = nbformat.read(path, 4)
ran = nbformat.read(path, 4)
NotebookClient(ran, timeout=120, kernel_name="python3").execute()


def shown(cell):
    texts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            texts.append(output.text)
        elif "image/png" in output.get("data", {}):
            texts.append("a picture")
        else:
            texts.append(output.get("data", {}).get("text/plain", output.output_type))
    return "\n".join(texts).strip()


if os.environ.get("UPDATE_GOLDEN"):
    for cell in ran.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("text/html", None)
            output.get("data", {}).pop("image/png", None) if "varies" in cell.metadata.get("tags", []) else None
    nbformat.write(ran, path)
wrong = 0
for before, after in zip(kept.cells, ran.cells):
    if before.cell_type != "code" or os.environ.get("UPDATE_GOLDEN"):
        continue
    same = bool(shown(before)) == bool(shown(after)) if "varies" in before.metadata.get("tags", []) \
        else shown(before) == shown(after)
    if not same:
        wrong += 1
        print(f"{before.source}\n--- kept\n{shown(before)}\n--- shown\n{shown(after)}")
print("ok" if wrong == 0 else f"{wrong} cells differ")

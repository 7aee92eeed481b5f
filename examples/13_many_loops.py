"""Serve two shops in one process: each has a loop with a log, a model and options of its own.

Next: 14 learns frames of prices and of decisions.
"""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from onlineauto.service.client import Client
from serving import running

LIKES = {"paris": {"tom": "rings", "anna": "watches"}, "rome": {"tom": "chains", "anna": "rings"}}
KINDS = {kind: {"kind": {kind: 1}} for kind in ("rings", "watches", "chains")}

draw = random.Random(1)
with TemporaryDirectory() as folder, running("serve", str(Path(folder) / "shops"), "--cb_explore_adf") as url:
    for shop, likes in LIKES.items():
        address = f"{url}/v1/loops/{shop}"
        httpx.put(address, json={"options": "--cb_explore_adf --automl 2 --learn_at reward"}, timeout=60)
        clicks = 0.0
        with Client(address, timeout=60) as client:
            for _ in range(400):
                visitor = draw.choice(list(likes))
                choice = client.rank({"visitor": {visitor: 1}}, KINDS)
                click = float(choice.action == likes[visitor])
                client.reward(choice, click)
                clicks += click
        print(f"{shop}: {clicks / 400:.2f} of the visits were clicked")
    for loop in httpx.get(f"{url}/v1/loops").json():
        print(f"the loop {loop['name']} is {loop['state']}, and ranked {loop['ranked']} visits")

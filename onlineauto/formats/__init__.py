"""Formats: bytes to Blocks.

* `onlineauto.formats.text` reads VW text, as VW 9.11.9 does or strictly;
* `onlineauto.formats.json` reads VW's JSON and decision-service logs;
* `onlineauto.formats.source` opens where it comes from;
* `onlineauto.formats.diagnostics` says what is wrong with it.
"""

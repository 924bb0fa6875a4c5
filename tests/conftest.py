"""Put the collection, the lab and the engine simulator on the import path, as Ansible and the images do."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
for folder in ("collections", "lab", "lab/engine"):
    sys.path.insert(0, str(ROOT / folder))

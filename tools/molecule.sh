#!/usr/bin/env bash
# Each role alone, against one simulated pair, in the order in which they build on each other.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
lab=molecule
lab/lab down --wipe --name "$lab"
lab/lab up --name "$lab"
trap 'lab/lab down --wipe --name "$lab"' EXIT
export TWINSERVE_INVENTORY="$PWD/.lab/$lab/inventory"
mkdir -p build
for role in fabric container model serve; do
  log="build/molecule-$role.log"
  # The exit code decides: after a failed idempotence step molecule's own summary still says "Successful".
  if (cd "roles/$role" && NO_COLOR=1 molecule test) > "$log" 2>&1; then
    echo "role $role: converges alone, twice without a change, verified"
  else
    tail -n 60 "$log"
    echo "role $role failed; all of it: $log"
    exit 1
  fi
done

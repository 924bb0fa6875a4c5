"""The image from a bundle: loaded on the head, and kept only when it is the one that is pinned. Pure.

A tar has no digest of a registry. What tells that it holds the pinned image is the release's label; for an
image without one it is the digest, where the store keeps it, or what `docker image inspect` said of the
pulled image on the machine that saved it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .image_source import is_own, wanted

# Beside the tar: {{json .RepoDigests}} {{json .RootFS.Layers}} of the image that was pulled by its digest.
_SCRIPT = r"""set -euo pipefail
tar=$1/image.tar name=$2 machine=$3 label=$4 patches=$5 digest=$6 beside=$1/image.txt
before=$(docker images --quiet --no-trunc)
said=$(docker load --input "$tar")
mapfile -t loaded < <(sed -nE 's/^Loaded image( ID)?: //p' <<< "$said")
test "${#loaded[@]}" != 0 || { echo "$tar brings no image: $said"; exit 1; }
asked() { docker image inspect --format "$1" "${loaded[@]}" | sort -u; }
refuse() {
    # Only what came just now: an image that was here before is not ours to remove.
    for one in "${loaded[@]}"; do
        id=$(docker image inspect --format '{{.Id}}' "$one")
        grep -qF "$id" <<< "$before" || docker rmi "$one" >/dev/null
    done
    echo "$1"
    exit 1
}
id=$(asked '{{.Id}}')
test "$(wc -l <<< "$id")" = 1 || refuse "$tar brings more than one image: ${loaded[*]}"
found=$(asked '{{.Architecture}}')
test "$found" = "$machine" || refuse "$tar is an image for $found, this machine is $machine"
if test -n "$patches"; then
    found=$(asked "{{index .Config.Labels \"$label\"}}")
    test "$found" = "$patches" || refuse "$tar has $label $found, the release has $patches"
elif test "$id" != "$digest"; then
    test -e "$beside" || refuse "$beside is missing, which tells that $tar holds $digest (docs/operations.md)"
    read -r digests layers < "$beside" || refuse "$beside is empty"
    case "$digests" in
        *"@$digest\""*) ;;
        *) refuse "$beside is of another image than $digest: $digests" ;;
    esac
    test "$(asked '{{json .RootFS.Layers}}')" = "$layers" || refuse "$tar has other layers than $beside says"
fi
docker tag "${loaded[0]}" "$name"
"""


def load_argv(node: Mapping[str, Any], settings: Mapping[str, Any], release: Mapping[str, Any]) -> list[str]:
    """Load the bundle's image and give it our name, if it is the one that is pinned."""
    names, digest = wanted(settings, release), str(settings["image_digest"])
    label = str(names["patches_label"] or "")
    patches = str(release.get("image_label") or "") if label and is_own(settings, release) else ""
    given = [str(settings["bundle"]), str(names["streamed"]), node["architecture"], label, patches, digest]
    return ["bash", "-c", _SCRIPT, "load", *given]

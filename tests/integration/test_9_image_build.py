"""An image that is built: from sources at their commits, again only for another input, and denied pulls."""

from __future__ import annotations

import base64
import ensurepip
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import NAME
from image_setups import PATCHES, image_names, pinned, put_repository, registry_off, write_recipe
from lab_pair import Lab
from link_setups import own_lab, said, shell

PLAY = "playbooks/container.yml"
BUILD = (PLAY, "-e", "release=made", "-e", "image_source=build")
# The lab's image has none.
PIP = next(Path(ensurepip.__file__).with_name("_bundled").glob("pip-*.whl"))
ENGINE, RECIPE = "/srv/engine", "/srv/recipe"
# Says at which address it listens; every manifest is denied.
DENYING = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/v2/" else 403)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(json.dumps({"errors": [{"code": "DENIED", "message": "denied"}]}).encode())
    do_HEAD = do_GET
http.server.HTTPServer(("127.0.0.1", 5999), Handler).serve_forever()
"""


def label(patches: dict[str, str]) -> str:
    """The label that the two patches and the extras make, as the recipe's own shell computes it."""
    text = "".join(patches[name] for name in sorted(patches)) + "av==18.1.0\n"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def publish(lab: Lab, patches: dict[str, str], hashed: str | None = None) -> None:
    """Put sources on the head and a release that is built from them into the catalogue."""
    engine = put_repository(lab, lab.hosts[0], ENGINE, {"extra/__init__.py": "X = 1\n"})
    files = {f"patches/{name}": text for name, text in patches.items()}
    recipe = put_repository(lab, lab.hosts[0], RECIPE, files)
    write_recipe(lab, "made", engine, recipe, hashed or label(patches))


def labels(lab: Lab, host: str) -> dict[str, str]:
    """Labels of the newest image of ours."""
    newest = "docker images --quiet localhost/twinserve/tensorfold | head -n1"
    text = shell(lab, host, f"docker image inspect $({newest}) --format '{{{{json .Config.Labels}}}}'")
    found: dict[str, str] = json.loads(text)
    return found


def ids(lab: Lab) -> list[str]:
    """Ids of all images of ours on both hosts."""
    listed = ["docker", "images", "--quiet", "--no-trunc", "localhost/twinserve/tensorfold"]
    return [lab.root(host, *listed) for host in lab.hosts]


@pytest.fixture(scope="module")
def pair() -> Iterator[Lab]:
    """Two hosts with a link, the sources on the head."""
    with own_lab(NAME) as lab:
        lab.play("playbooks/fabric.yml").succeeded()
        publish(lab, PATCHES)
        yield lab


def test_c06_a_denied_pull_is_told_and_nothing_is_built_instead(pair: Lab) -> None:
    head = pair.hosts[0]
    config = {"auths": {"127.0.0.1:5999": {"auth": base64.b64encode(b"me:old").decode()}}}
    script = f"mkdir -p /root/.docker; echo '{json.dumps(config)}' >/root/.docker/config.json"
    shell(pair, head, script)
    pair.root(head, "systemd-run", "--quiet", "--unit", "denying", "python3", "-c", DENYING)
    try:
        refused = pair.play(PLAY, "-e", "release=made", "-e", "image=127.0.0.1:5999/x/engine").refused()
    finally:
        shell(pair, head, "systemctl stop denying; rm /root/.docker/config.json")
    assert (
        "127.0.0.1:5999 refused a stored login on the head; run sudo docker logout 127.0.0.1:5999 there, or "
        "set image_source: build"
    ) in said(refused.output)
    assert image_names(pair, head) == set()


def test_patches_that_are_not_the_releases_are_not_built(pair: Lab) -> None:
    publish(pair, PATCHES, "0" * 12)
    refused = said(pair.play(*BUILD).refused().output)
    assert f"have the hash {label(PATCHES)}, the release says 000000000000: not built" in refused
    publish(pair, PATCHES)


def test_the_image_is_built_on_the_head_and_streamed(pair: Lab) -> None:
    foreseen = pair.play(*BUILD, "--check").succeeded()
    assert foreseen.changed >= 3 and image_names(pair, pair.hosts[0]) == set()

    pair.play(*BUILD).succeeded()

    for host in pair.hosts:
        assert labels(pair, host)["tf.patches"] == label(PATCHES)
    names = image_names(pair, pair.hosts[1])
    assert len(names) == 1
    command = f"docker run --rm --entrypoint python3 {names.pop()} -c"
    shown = shell(pair, pair.hosts[1], f"{command} 'import extra, tensorfold.marker as m; print(m.NAMES)'")
    assert shown.strip() == "['one', 'two']"
    assert pair.play(*BUILD).succeeded().changed == 0


@pytest.mark.slow
def test_it_is_built_again_for_another_input_or_when_asked(pair: Lab) -> None:
    before = ids(pair)
    pair.play(*BUILD, "-e", "rebuild=true").succeeded()
    again = ids(pair)
    assert [bool(set(old.split()) & set(new.split())) for old, new in zip(before, again, strict=True)] == [
        False,
        False,
    ]

    third = {"0003-other.patch": "--- /dev/null\n+++ tensorfold/other.py\n@@ -0,0 +1 @@\n+X = 3\n"}
    publish(pair, PATCHES | third)
    pair.play(*BUILD).succeeded()
    for host in pair.hosts:
        assert labels(pair, host)["tf.patches"] == label(PATCHES | third)


@pytest.mark.slow
def test_what_cannot_be_pulled_is_built_with_auto(pair: Lab) -> None:
    """The base is on the head, so the build needs no registry."""
    publish(pair, PATCHES)
    pair.root(pair.hosts[0], "docker", "pull", "--quiet", pinned(pair))
    for host in pair.hosts:
        shell(
            pair, host, "docker images --quiet localhost/twinserve/tensorfold | xargs -r docker rmi --force"
        )
    other = "sha256:" + "ab" * 32
    (pair.folder / "catalogue/gone.yml").write_text(f"extends: made\ndefaults: {{image_digest: {other}}}\n")
    with registry_off(pair, pair.hosts[0]), registry_off(pair, pair.hosts[1]):
        own = ("-e", "release=made", "-e", f"image_digest={other}")
        assert "cannot be reached" in said(pair.play(PLAY, *own).refused().output)
        assert ids(pair) == ["", ""], "another image than the release's is not built"
        run = pair.play(PLAY, "-e", "release=gone").succeeded()
        again = pair.play(PLAY, "-e", "release=gone").succeeded()
    assert "it is built here" in said(run.output)
    assert again.changed == 0 and "built here, in place of" in said(again.output)
    assert labels(pair, pair.hosts[1])["tf.patches"] == label(PATCHES)


def wheels(lab: Lab) -> tuple[str, str]:
    """A repository on the head with pip and one package, as wheels; its address, and the package's hash."""
    name, buffer = "example-1.0", io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("example.py", "X = 7\n")
        wheel.writestr(f"{name}.dist-info/METADATA", "Metadata-Version: 2.1\nName: example\nVersion: 1.0\n")
        wheel.writestr(
            f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{name}.dist-info/RECORD", "")
    package = buffer.getvalue()
    files = {PIP.name: PIP.read_bytes(), f"{name}-py3-none-any.whl": package}
    return put_repository(lab, lab.hosts[0], "/srv/wheels", files), hashlib.sha256(package).hexdigest()


@pytest.mark.slow
def test_an_image_is_derived_with_a_package_by_its_hash_and_not_with_another(pair: Lab) -> None:
    """As an engine that ships as an image gets one library more."""
    address, right = wheels(pair)
    base = pinned(pair)
    pair.root(pair.hosts[0], "docker", "pull", "--quiet", base)

    def derive(hashed: str) -> None:
        recipe = {
            "requirements": [f"example==1.0 --hash=sha256:{hashed}"],
            "install": (
                f"python3 engine/{PIP.name}/pip install --no-index --find-links engine --no-deps "
                "--require-hashes --target /opt/derived --requirement requirements.txt"
            ),
            "patches": False,  # a map would be merged with the release's
            "extras": [],
            # What `env` sets comes after the check.
            "check": "PYTHONPATH=/opt/derived python3 -c 'import example; assert example.X == 7'",
            "env": {"PYTHONPATH": "/opt/derived"},
        }
        release = {
            "extends": "lab",
            "defaults": {"base_image": base, "engine_source": address},
            "recipe": recipe,
        }
        (pair.folder / "catalogue/derived.yml").write_text(json.dumps(release))

    play = (PLAY, "-e", "release=derived", "-e", "image_source=build")
    before = ids(pair)
    derive("0" * 64)
    assert "build of the image failed" in said(pair.play(*play).refused().output)
    assert ids(pair) == before

    derive(right)
    pair.play(*play).succeeded()

    newest = "docker images --quiet localhost/twinserve/tensorfold | head -n1"
    for host in pair.hosts:
        run = f"docker run --rm --entrypoint python3 $({newest}) -c 'import example; print(example.X)'"
        assert shell(pair, host, run).strip() == "7"

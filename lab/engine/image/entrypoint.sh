#!/bin/sh
# As the base image of the real engine does: say who we are, then become the command.
cat <<'BANNER'

=============
== PyTorch ==
=============

A simulated engine image: no GPU code is in it.

BANNER
exec "$@"

#!/bin/sh
#
# Ansible managed
#
PYTHONPATH=/usr/local/lib/twinserve/current exec /usr/bin/python3 -P -m twinserve.control

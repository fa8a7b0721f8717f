#!/bin/bash
# The name that boothooks start. Everything it used to do, `launch` does.
exec "${BIN_PATH:-/opt/azure/containers/aks-node-controller}" launch

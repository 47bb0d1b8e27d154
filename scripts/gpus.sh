#!/bin/sh
# gpus.sh - prints the compute capability of each GPU of this host, without its dot, one a line: only
# lines that are nothing but a number count, whatever else the query tool prints. Where
# CUDA_VISIBLE_DEVICES, which that tool does not heed, hides every GPU from programs, it prints
# nothing: what stands first there is neither a number nor a GPU's name.
case ${CUDA_VISIBLE_DEVICES-0} in
[0-9]* | GPU-* | MIG-*) ;;
*) exit 0 ;;
esac
nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null |
    sed -n 's/^ *\([0-9][0-9]*\)\.\([0-9]\) *$/\1\2/p'

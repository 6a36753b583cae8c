"""Kernels: leaves that compute one operation of `ops.py` fast on one kind of device. They import no other module."""

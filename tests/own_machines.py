"""Machines of one's own as somebody writes them, and what cannot be one with what is said of it."""

from __future__ import annotations

OWN = [
    "24GB",
    "1.5tib",
    "24GB,1008GB/s,165TFLOPS",
    " 165.2 TFLOP/s , 24 GB,1.008TB/s",
    "64GiB,2xDDR5-5600",
    "1TB,12×ddr4-3200",
    "1GB,1KiB/s,2TFLOPS,fp8:4tflops,int8:8TOPS,fp4:1PFLOPS,link:1MB/s",
    "h100,94GB",
    "rtx-4090,165TFLOPS",
]

WRONG = {
    "24GB,24GiB": "memory was given before it",
    "24GB,1GB/s,2xDDR5-5600": "bandwidth was given before it",
    "24GB,1GB/s,1TFLOPS,bfloat16:2TFLOPS": "a peak of bfloat16 was given before it",
    "24GB,0GB/s": "'0GB/s' is zero",
    "0GB": "'0GB' is zero",
    "24GB,1008Gb/s": "'1008Gb/s' is in bits; write bytes",
    "24GB,200Gbit/s": "'200Gbit/s' is in bits",
    "24GB,1GB/s,330TOPS": "operations without a type; say which, as in int8:330TOPS",
    "24GB,1GB/s,fp9:3TFLOPS": "'fp9' is not a type of a peak; one of float32",
    "24GB,1,008GB/s": "'1': not an amount of memory, bandwidth or compute; write it as in 24GB,1008GB/s,165TFLOPS",
    "24GB,": "'': not an amount",
    "24GB,1008": "'1008': not an amount of memory, bandwidth or compute; write it as in 24GB,1008GB/s,165TFLOPS",
    "24GB,1e3GB/s": "'1e3GB/s': not an amount",
    "24GB,2xDDR5": "'2xDDR5': not an amount",
    "24GB,-1GB/s": "'-1GB/s': not an amount",
    "24GB,1008GB/s,165TFLOPS please": "'165TFLOPS please': not an amount",
    "h10,24GB": 'did you mean "h100"?',
    "24GB,h100": "'h100': only one machine can be named",
    "1008GB/s": "a machine without memory",
    "24GB,165TFLOPS": "a peak or a link without a bandwidth; add it",
}

# Writes where nothing is mapped.
.intel_syntax noprefix
    mov byte ptr [0x1230], 1
    ud2

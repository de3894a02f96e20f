# Executes an instruction that is the kernel's alone.
.intel_syntax noprefix
    hlt
    ud2

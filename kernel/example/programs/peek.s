# Reads the kernel's memory.
.intel_syntax noprefix
    mov rbx, 0xffff800000000000
    mov rax, [rbx]
    ud2

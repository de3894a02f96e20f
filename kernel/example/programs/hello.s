# Writes a line and exits with status 42.
.intel_syntax noprefix
    mov eax, 1
    mov edi, 1
    lea rsi, [rip + text]
    mov edx, 18
    syscall
    cmp rax, 18
    jne wrong
    mov edi, 42
    mov eax, 60
    syscall
wrong:
    ud2
text:
    .ascii "Hello from ring 3\n"
end:

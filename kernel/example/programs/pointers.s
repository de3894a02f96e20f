# Has the kernel read what the program cannot, and more. Its status is the number of the first call
# that was not refused as it should be, or 0.
.intel_syntax noprefix

.macro refused number, call, file, pointer, length, error
    mov eax, \call
    mov edi, \file
    mov rsi, \pointer
    mov rdx, \length
    syscall
    mov edi, \number
    cmp rax, \error
    jne exit
.endm

    refused 1, 1, 1, 0x1000, 5, -14                 # nothing is there
    refused 2, 1, 1, 0xffff800000000000, 5, -14     # the kernel's memory
    refused 3, 1, 1, 0x7f0ff0, 17, -14              # one byte beyond the stack
    refused 4, 1, 1, -3, 17, -14                    # around the end of all addresses
    refused 5, 1, 7, 0x7f0000, 1, -9                # no such file
    refused 6, 999, 1, 0x7f0000, 1, -38             # no such call
    refused 7, 1, 1, 0x1000, 0, 0                   # nothing is read from a bad pointer
    mov eax, 1
    mov edi, 1
    lea rsi, [rip + text]
    mov edx, 21
    syscall
    xor edi, edi
exit:
    mov eax, 60
    syscall
text:
    .ascii "bad calls are errors\n"

/* SQLite calls fcntl with variable arguments, which on Apple's processors do not travel like fixed ones. */
#include <stdarg.h>

int membox_queue_fcntl(int fd, int command, void *argument);

int membox_queue_fcntl_variadic(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return membox_queue_fcntl(fd, command, argument);
}

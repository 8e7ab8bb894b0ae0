/*
 * on_terminal COMMAND ARGUMENTS... runs a command on a new terminal, and copies all that it writes
 * there, also to standard error, to standard output at once. The command reads the standard input
 * of this program, and gets its SIGTERM. Exits as the command does, 125 if there is no terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int failed(const char *what) {
    perror(what);
    return 125;
}

/* Bytes as they are written: a line feed stays one. */
static int open_terminal(int keeper) {
    struct termios modes;
    if (grantpt(keeper) != 0 || unlockpt(keeper) != 0) return -1;
    const int terminal = open(ptsname(keeper), O_RDWR | O_NOCTTY);
    if (terminal < 0 || tcgetattr(terminal, &modes) != 0) return -1;
    modes.c_oflag &= ~(tcflag_t)OPOST;
    return tcsetattr(terminal, TCSANOW, &modes) == 0 ? terminal : -1;
}

static void start(int terminal, int keeper, char **command) {
    setsid();
    ioctl(terminal, TIOCSCTTY, 0);
    dup2(terminal, STDOUT_FILENO);
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    close(keeper);
    execvp(*command, command);
    _exit(failed(*command));
}

static pid_t child;

static void pass_on(int signal) { kill(child, signal); }

static char bytes[8192];

/* The first n of bytes. */
static int put(size_t n) {
    return fwrite(bytes, 1, n, stdout) == n && fflush(stdout) == 0 ? 0 : -1;
}

/*
 * What is still on its way through a terminal can be lost when the last process closes it. So it
 * stays open here, and once the command has ended an end is written behind all that it wrote.
 */
static const char end[] = "\0no more of it";

/* What is left, up to the end. writer: the terminal, which may not wait for this reader. */
static int copy_rest(int keeper, int writer) {
    size_t n = 0, sent = 0;
    for (;;) {
        const ssize_t more = write(writer, end + sent, sizeof end - sent);
        if (more > 0) sent += (size_t)more;
        if (more < 0 && errno != EAGAIN && errno != EINTR) return -1;
        const ssize_t got = read(keeper, bytes + n, sizeof bytes - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -1;
        n += (size_t)got;
        const int ended = n >= sizeof end && memcmp(bytes + n - sizeof end, end, sizeof end) == 0;
        const size_t ready = ended ? n - sizeof end : n > sizeof end ? n - sizeof end : 0;
        if (put(ready) != 0) return -1;
        if (ended) return 0;
        memmove(bytes, bytes + ready, n -= ready);
    }
}

/* Until the command has ended; its status. */
static int copy(int keeper, int writer, int *status) {
    struct pollfd readable = { .fd = keeper, .events = POLLIN };
    for (;;) {
        const pid_t ended = waitpid(child, status, WNOHANG);
        if (ended == child) return copy_rest(keeper, writer);
        if (ended < 0 && errno != EINTR) return -1;
        const int n_ready = poll(&readable, 1, 20);
        if (n_ready < 0 && errno != EINTR) return -1;
        if (n_ready <= 0) continue;
        const ssize_t n = read(keeper, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || put((size_t)n) != 0) return -1;
    }
}

int main(int argc, char **argv) {
    int status = 0;
    if (argc < 2) return 125;
    const int keeper = posix_openpt(O_RDWR | O_NOCTTY);
    const int terminal = keeper < 0 ? -1 : open_terminal(keeper);
    const int writer = terminal < 0 ? -1 : open(ptsname(keeper), O_WRONLY | O_NOCTTY | O_NONBLOCK);
    if (writer < 0) return failed("no terminal");
    child = fork();
    if (child < 0) return failed("fork");
    if (child == 0) {
        close(writer);
        start(terminal, keeper, argv + 1);
    }
    signal(SIGTERM, pass_on);
    close(terminal);
    if (copy(keeper, writer, &status) != 0) return failed("the terminal");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

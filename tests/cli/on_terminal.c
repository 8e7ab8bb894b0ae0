/*
 * on_terminal COMMAND ARGUMENTS... runs a command on a new terminal, and copies all that it writes
 * there, also to standard error, to standard output at once. The command reads the standard input
 * of this program, and gets its SIGTERM. Exits as the command does, 125 if there is no terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Until no process has the terminal any more: Linux says so with EIO. */
static int copy(int keeper) {
    char bytes[4096];
    for (;;) {
        const ssize_t n = read(keeper, bytes, sizeof bytes);
        if (n > 0 && (fwrite(bytes, 1, (size_t)n, stdout) != (size_t)n || fflush(stdout) != 0))
            return -1;
        if (n > 0 || (n < 0 && errno == EINTR)) continue;
        return n == 0 || errno == EIO ? 0 : -1;
    }
}

int main(int argc, char **argv) {
    int status;
    if (argc < 2) return 125;
    const int keeper = posix_openpt(O_RDWR | O_NOCTTY);
    const int terminal = keeper < 0 ? -1 : open_terminal(keeper);
    if (terminal < 0) return failed("no terminal");
    child = fork();
    if (child < 0) return failed("fork");
    if (child == 0) start(terminal, keeper, argv + 1);
    signal(SIGTERM, pass_on);
    close(terminal);
    if (copy(keeper) != 0) return failed("the terminal");
    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR) return failed("wait");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

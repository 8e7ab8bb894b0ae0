/*
 * serve_client PORT [MILLISECONDS|leaves]: sends its standard input to 127.0.0.1:PORT, and prints
 * what comes back until the server closes the connection, which it never does itself. It connects
 * when it has read some input, or its end, and reports that on standard error. MILLISECONDS: sends
 * one byte at a time, with this pause; "leaves": ends instead of reading.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(const char *port) {
    const struct sockaddr_in at = { .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)atoi(port)),
                                    .sin_addr = { htonl(INADDR_LOOPBACK) } };
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        perror("serve_client");
        exit(3);
    }
    fputs("connected\n", stderr);
    return fd;
}

/* Prints what is there; 0 at its end. */
static int print_some(int fd) {
    static char bytes[1 << 16];
    const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    if (n <= 0) return 0;
    return fwrite(bytes, 1, (size_t)n, stdout) == (size_t)n;
}

/* The answer may come, and the connection end, before all is sent. */
static int send_all(int fd, int pause) {
    static char bytes[1 << 16];
    ssize_t n;
    while ((n = read(STDIN_FILENO, bytes, pause ? 1 : sizeof bytes)) > 0) {
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        if (pause && poll(&ready, 1, pause) == 1 && !print_some(fd)) return 0;
        for (ssize_t sent = 0; sent < n;) {
            const ssize_t more = send(fd, bytes + sent, (size_t)(n - sent), MSG_NOSIGNAL);
            if (more < 0) return 1;
            sent += more;
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const int fd = connect_to(argv[1]);
    const int leaves = argc > 2 && strcmp(argv[2], "leaves") == 0;
    if (send_all(fd, argc > 2 && !leaves ? atoi(argv[2]) : 0) && !leaves)
        while (print_some(fd)) {
        }
    close(fd);
    return 0;
}

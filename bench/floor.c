// The floor of a load generator: sends, receives, waits, and nothing else.
//
//   floor ADDRESS:PORT CONNECTIONS SECONDS          as fast as answers come
//   floor ADDRESS:PORT CONNECTIONS SECONDS RATE     evenly, RATE requests a second
//
// It takes whatever arrives for one answer, keeps no time and checks nothing: no usable
// generator can cost less. Prints the number of requests sent.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024, NANOS = 1000000000 };
static int sockets[MOST];
static char request[256];
static int length;

static void must(int ok, const char *what) {
    if (!ok) { perror(what); exit(1); }
}

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (long)NANOS + t.tv_nsec;
}

static void ask(int connection) {
    must(send(sockets[connection], request, length, MSG_NOSIGNAL) == length, "send");
}

int main(int count, char **arguments) {
    must(count >= 4, "floor ADDRESS:PORT CONNECTIONS SECONDS [RATE]");
    char *port = strchr(arguments[1], ':');
    must(port != NULL, "ADDRESS:PORT");
    *port++ = 0;
    int connections = atoi(arguments[2]);
    must(connections > 0 && connections <= MOST, "CONNECTIONS: 1 to 1024");
    double rate = count > 4 ? atof(arguments[4]) : 0;
    length = snprintf(request, sizeof request, "GET /file HTTP/1.1\r\nhost: %s:%s\r\n\r\n", arguments[1], port);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    must(inet_pton(AF_INET, arguments[1], &address.sin_addr) == 1, "ADDRESS");
    // Timers of this thread may otherwise end 50 us late.
    prctl(PR_SET_TIMERSLACK, 1UL);

    int poller = epoll_create1(0), one = 1;
    for (int i = 0; i < connections; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
        must(connect(sockets[i], (struct sockaddr *)&address, sizeof address) == 0, "connect");
        setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        must(epoll_ctl(poller, EPOLL_CTL_ADD, sockets[i], &event) == 0, "epoll_ctl");
    }

    long began = now(), end = began + atol(arguments[3]) * NANOS, sent = 0;
    if (rate == 0)
        for (int i = 0; i < connections; i++, sent++) ask(i);
    struct epoll_event events[MOST];
    char answer[65536];
    for (;;) {
        long time = now(), due = end;
        if (rate > 0) {
            while ((due = began + (long)(sent / rate * NANOS)) <= time && due < end) ask(sent++ % connections);
            if (due > end) due = end;
        }
        if (time >= end) break;
        struct timespec wait = {.tv_sec = (due - time) / NANOS, .tv_nsec = (due - time) % NANOS};
        if (due <= time) wait = (struct timespec){0};
        int ready = epoll_pwait2(poller, events, MOST, &wait, NULL);
        must(ready >= 0, "epoll_pwait2");
        for (int i = 0; i < ready; i++) {
            int connection = events[i].data.u32;
            must(recv(sockets[connection], answer, sizeof answer, 0) > 0, "recv");
            if (rate == 0) { ask(connection); sent++; }
        }
    }
    printf("%ld\n", sent);
    return 0;
}

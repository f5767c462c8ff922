// The floor of a service in a chain: reads a request, asks the next service over a
// connection that it keeps, answers. It parses nothing and checks nothing.
//
//   chain PORT          the last one: it answers itself
//   chain PORT NEXT     asks 127.0.0.1:NEXT
//
// Port 0: any free one. Prints the port that it listens on.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

enum { MOST = 1024, ROOM = 16384 };
// For each descriptor: the other side of its request. 0: none.
static int other[MOST];
static char is_caller[MOST];
static char room[ROOM];
static const char request[] = "GET / HTTP/1.1\r\nHost: next\r\n\r\n";
static const char answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 43\r\n\r\n"
    "hello:broot:/:hello:bbranch:/:hello:bleaf:/";

static void must(int ok, const char *what) {
    if (!ok) { perror(what); exit(1); }
}

static struct sockaddr_in at(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void watch(int poller, int socket) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};
    must(epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) == 0, "epoll_ctl");
}

static void say(int socket, const char *bytes, int length) {
    must(send(socket, bytes, length, MSG_NOSIGNAL) == length, "send");
}

int main(int count, char **arguments) {
    must(count >= 2, "chain PORT [NEXT]");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int one = 1, next = count > 2 ? atoi(arguments[2]) : 0;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = at(atoi(arguments[1]));
    socklen_t size = sizeof address;
    must(bind(listener, (struct sockaddr *)&address, size) == 0, "bind");
    must(listen(listener, 128) == 0, "listen");
    must(getsockname(listener, (struct sockaddr *)&address, &size) == 0, "getsockname");
    printf("127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    int poller = epoll_create1(0);
    watch(poller, listener);
    for (;;) {
        struct epoll_event events[64];
        int found = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < found; i++) {
            int socket_ = events[i].data.fd;
            if (socket_ == listener) {
                int caller = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                must(caller >= 0 && caller < MOST, "accept");
                setsockopt(caller, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                is_caller[caller] = 1;
                other[caller] = 0;
                if (next) {
                    int callee = socket(AF_INET, SOCK_STREAM, 0);
                    struct sockaddr_in to = at(next);
                    must(callee >= 0 && callee < MOST, "socket");
                    must(connect(callee, (struct sockaddr *)&to, sizeof to) == 0, "connect");
                    setsockopt(callee, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    is_caller[callee] = 0;
                    other[callee] = caller;
                    other[caller] = callee;
                    watch(poller, callee);
                }
                watch(poller, caller);
                continue;
            }
            if (recv(socket_, room, ROOM, 0) <= 0) {
                if (other[socket_]) close(other[socket_]);
                close(socket_);
            } else if (!is_caller[socket_]) {
                say(other[socket_], answer, sizeof answer - 1);
            } else if (other[socket_]) {
                say(other[socket_], request, sizeof request - 1);
            } else {
                say(socket_, answer, sizeof answer - 1);
            }
        }
    }
}

/*
 * heartbeat.c - who is alive: see heartbeat.h.
 */
#define _XOPEN_SOURCE 700
#include "heartbeat.h"

#include "worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BEAT_MS = 200 };
static const double silent_s = 1.5;

/* What goes over the wire, between processes of one program. */
typedef struct beat {
    uint64_t token, begun, arrived;
    int32_t rank, is_end;
} beat;

/* What is known of a rank. */
typedef struct pulse {
    double heard_s;
    uint64_t begun, arrived;
} pulse;

static struct {
    int socket, rank, size;
    heartbeat_address *addresses;
    uint64_t token;
    pulse *pulses; /* under the lock */
    pthread_mutex_t lock;
    pthread_t thread;
    int running;
    atomic_int stop, is_end;
    atomic_uint_fast64_t begun, arrived;
} heart = {.socket = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- the socket ------------------------------------------------------------------- */

/* The host's own address as others may know it; the loopback's where it has no name. */
static uint32_t own_host(int is_local)
{
    struct addrinfo hints, *found = NULL;
    char name[256] = "";
    uint32_t host = htonl(INADDR_LOOPBACK);
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_DGRAM;
    if (is_local || gethostname(name, sizeof name - 1) != 0 ||
        getaddrinfo(name, NULL, &hints, &found) != 0)
        return host;
    host = ((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr.s_addr;
    freeaddrinfo(found);
    return host;
}

int heartbeat_open(int is_local, heartbeat_address *own)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(is_local ? INADDR_LOOPBACK : INADDR_ANY);
    heart.socket = socket(AF_INET, SOCK_DGRAM, 0);
    if (heart.socket < 0 ||
        bind(heart.socket, (const struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(heart.socket, (struct sockaddr *)&address, &length) != 0)
        return errno;
    own->host = own_host(is_local);
    own->port = address.sin_port;
    return 0;
}

/* A datagram that is lost is followed by the next: errors do not matter. */
static void send_beat(int to)
{
    struct sockaddr_in address;
    beat b = {heart.token, heart.begun, heart.arrived, heart.rank, heart.is_end};
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = heart.addresses[to].host;
    address.sin_port = heart.addresses[to].port;
    (void)!sendto(heart.socket, &b, sizeof b, 0, (const struct sockaddr *)&address, sizeof address);
}

static void send_beats(void)
{
    if (heart.rank > 0) {
        send_beat(0);
        return;
    }
    for (int rank = 1; rank < heart.size; rank++) send_beat(rank);
}

static void receive_beats(void)
{
    beat b;
    while (recv(heart.socket, &b, sizeof b, MSG_DONTWAIT) == (ssize_t)sizeof b) {
        if (b.token != heart.token || b.rank < 0 || b.rank >= heart.size) continue;
        pthread_mutex_lock(&heart.lock);
        heart.pulses[b.rank] = (pulse){now_s(), b.begun, b.arrived};
        pthread_mutex_unlock(&heart.lock);
        if (b.is_end && b.rank == 0) heart.is_end = 1;
    }
}

static void *beat_on(void *unused)
{
    double next_s = 0;
    (void)unused;
    while (!heart.stop) {
        struct pollfd ready = {heart.socket, POLLIN, 0};
        if (now_s() >= next_s) {
            send_beats();
            next_s = now_s() + BEAT_MS * 1e-3;
        }
        if (poll(&ready, 1, BEAT_MS / 2) > 0) receive_beats();
    }
    return NULL;
}

int heartbeat_start(int rank, int size, const heartbeat_address *addresses, uint64_t token)
{
    int code;
    heart.rank = rank;
    heart.size = size;
    heart.token = token;
    heart.addresses = calloc((size_t)size, sizeof *heart.addresses);
    heart.pulses = calloc((size_t)size, sizeof *heart.pulses);
    if (!heart.addresses || !heart.pulses) return ENOMEM;
    memcpy(heart.addresses, addresses, (size_t)size * sizeof *addresses);
    for (int i = 0; i < size; i++) heart.pulses[i].heard_s = now_s();
    code = worker_create(&heart.thread, beat_on);
    heart.running = code == 0;
    return code;
}

void heartbeat_begins(uint64_t sequence)
{
    heart.begun = sequence;
}

void heartbeat_arrives(uint64_t sequence)
{
    heart.arrived = sequence;
}

/* ---- who is late ------------------------------------------------------------------ */

/* Adds the numbers of the ranks that are so, with the words in front, if there are any. */
static int name_ranks(int (*is_so)(const pulse *p, uint64_t sequence), uint64_t sequence,
                      const char *words, char *text, size_t capacity)
{
    size_t length = strlen(text);
    int named = 0;
    for (int rank = heart.rank + 1; rank < heart.size; rank++) {
        if (!is_so(&heart.pulses[rank], sequence)) continue;
        if (named < 8 && length < capacity)
            length += (size_t)snprintf(text + length, capacity - length, "%s%d",
                                       named ? ", " : "rank ", rank);
        named++;
    }
    if (named > 0 && length < capacity) snprintf(text + length, capacity - length, "%s", words);
    return named;
}

static int is_silent(const pulse *p, uint64_t sequence)
{
    (void)sequence;
    return now_s() - p->heard_s > silent_s;
}

static int is_behind(const pulse *p, uint64_t sequence)
{
    return !is_silent(p, sequence) && p->begun < sequence;
}

static int has_not_arrived(const pulse *p, uint64_t sequence)
{
    return !is_silent(p, sequence) && p->begun >= sequence && p->arrived < sequence;
}

void heartbeat_blame(uint64_t sequence, char *text, size_t capacity)
{
    int named = 0;
    *text = '\0';
    if (!heart.running) {
        snprintf(text, capacity, "no rank was reached yet");
        return;
    }
    pthread_mutex_lock(&heart.lock);
    named += name_ranks(is_silent, sequence, " is silent: killed or stopped or cut off", text,
                        capacity);
    if (named == 0) named += name_ranks(is_behind, sequence, " did not begin it", text, capacity);
    if (named == 0)
        named += name_ranks(has_not_arrived, sequence, " did not come to it", text, capacity);
    pthread_mutex_unlock(&heart.lock);
    if (named == 0) snprintf(text, capacity, "all ranks are alive and in it");
}

void heartbeat_end_all(void)
{
    heart.is_end = 1;
    for (int i = 0; i < 3 && heart.running; i++) send_beats();
}

double heartbeat_silence(void)
{
    double silence;
    if (heart.is_end) return -1;
    if (!heart.running) return 0;
    pthread_mutex_lock(&heart.lock);
    silence = now_s() - heart.pulses[0].heard_s;
    pthread_mutex_unlock(&heart.lock);
    return silence;
}

void heartbeat_close(void)
{
    heart.stop = 1;
    if (heart.running) pthread_join(heart.thread, NULL);
    heart.running = 0;
    if (heart.socket >= 0) close(heart.socket);
    heart.socket = -1;
    free(heart.addresses);
    free(heart.pulses);
    heart.addresses = NULL;
    heart.pulses = NULL;
}

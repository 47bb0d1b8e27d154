/*
 * heartbeat.h - which process of a job is alive, and where it is: each says so to rank 0
 * a few times a second, and rank 0 to each, by datagrams from a thread of its own. That
 * still works where a rank is stuck in a library's call, and the other way round a rank
 * that was killed or stopped is silent, whatever the library believes.
 */
#ifndef HEARTBEAT_H
#define HEARTBEAT_H

#include <stddef.h>
#include <stdint.h>

/* How to reach a process. */
typedef struct heartbeat_address {
    uint32_t host; /* IPv4, in network order; 0: unknown */
    uint16_t port; /* in network order */
} heartbeat_address;

/* Takes a socket. is_local: all ranks are on one host. 0 or an errno. */
int heartbeat_open(int is_local, heartbeat_address *own);

/* Starts saying where this rank is; addresses are those of all ranks, the token the same
 * number in all. 0 or an errno. */
int heartbeat_start(int rank, int size, const heartbeat_address *addresses, uint64_t token);

/* This rank has begun order number `sequence`; and has come to the collective in it. */
void heartbeat_begins(uint64_t sequence);
void heartbeat_arrives(uint64_t sequence);

/* Of rank 0: who holds order number `sequence` up, as words for a message. */
void heartbeat_blame(uint64_t sequence, char *text, size_t capacity);

/* Of rank 0: tells the others to end. */
void heartbeat_end_all(void);

/* Of the others: seconds since rank 0 was heard last, or a negative number once it said
 * that all is over. */
double heartbeat_silence(void);

void heartbeat_close(void);

#endif

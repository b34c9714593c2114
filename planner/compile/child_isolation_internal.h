#pragma once

#include <sys/resource.h>

namespace sluice::planner {

// What a child makes of itself between fork and exec, so that the program it becomes has less than
// this process's user may do: async-signal-safe calls only. None of it can be undone.

inline constexpr int kCannotStart = 127;  // its exit code

void LimitResource(int resource, rlim_t value);

// No network, nothing to write, no device (a terminal is one: what is typed into it, its shell
// does), and no other process: not even /proc shows one, whose environment may hold a password.
// What it leaves running, in whichever session, ends with it. False: some of it is not allowed, and
// the program keeps what this user may do.
bool IsolateProcess();

// No socket but the three that it has: a Unix socket has a place in the file system, where no
// namespace of the network hides it (the database's, the system log's). io_uring makes sockets,
// too, and another architecture's calls have other numbers. No lock or lease of a file, which keeps
// others from writing it although it can only be read. False: the kernel has no such filters.
bool RefuseSocketsAndLocks();

// Threads, but no processes: each of them would have the memory that one may have. And not as many
// threads as the gateway's user may have, whom the gateway needs some of: since Linux 5.14 those of
// a namespace of users are counted apart. False: as above.
bool RefuseProcesses();

}  // namespace sluice::planner

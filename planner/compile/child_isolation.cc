#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/compile/child_isolation_internal.h"

namespace sluice::planner {
namespace {

constexpr int kOfSignal = 128;  // an exit code above it: of a process that a signal ended

// Ends as that process of ours did, whose number is its own in another namespace.
[[noreturn]] void EndAs(pid_t inner) {
  close_range(0, ~0U, 0);
  int status = 0;
  while (waitpid(inner, &status, 0) < 0) {
    if (errno != EINTR) {
      _exit(kCannotStart);
    }
  }
  // The first process of a namespace cannot end by a signal of its own.
  const int ended_by = WIFSIGNALED(status)               ? WTERMSIG(status)
                       : WEXITSTATUS(status) > kOfSignal ? WEXITSTATUS(status) - kOfSignal
                                                         : 0;
  if (ended_by != 0) {
    signal(ended_by, SIG_DFL);
    kill(getpid(), ended_by);
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : kCannotStart);
}

// The first process of a namespace of processes, which the kernel ends with it: the program itself
// could refuse to be told of its parent's death. Ends with the program.
[[noreturn]] void Reap(pid_t program) {
  close_range(0, ~0U, 0);
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended == program) {
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : kOfSignal + WTERMSIG(status));
    }
    if (ended < 0 && errno != EINTR) {
      _exit(kCannotStart);
    }
  }
}

// The devices that say and do nothing, apart from the mounts that hold them: what programs expect.
class HarmlessDevices {
 public:
  HarmlessDevices() {
    for (size_t i = 0; i < kPaths.size(); ++i) {
      mounts_[i] = open_tree(AT_FDCWD, kPaths[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    }
  }
  void Mount(const mount_attr& attributes) const {
    for (size_t i = 0; i < kPaths.size(); ++i) {
      mount_attr own = attributes;
      own.attr_set &= ~static_cast<uint64_t>(MOUNT_ATTR_NODEV);
      // Without one of them a program does without it.
      if (mount_setattr(mounts_[i], "", AT_EMPTY_PATH, &own, sizeof(own)) == 0) {
        move_mount(mounts_[i], "", AT_FDCWD, kPaths[i], MOVE_MOUNT_F_EMPTY_PATH);
      }
      close(mounts_[i]);
    }
  }

 private:
  static constexpr std::array<const char*, 4> kPaths = {"/dev/null", "/dev/zero", "/dev/random",
                                                        "/dev/urandom"};
  std::array<int, kPaths.size()> mounts_{};
};

// Of this namespace only. Where something is mounted over a part of /proc, as in most containers,
// the kernel makes no new one, and an empty folder is what does not show the others.
bool MountProcesses() {
  constexpr unsigned long kNothing = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return mount("proc", "/proc", "proc", kNothing, nullptr) == 0 ||
         mount("none", "/proc", "tmpfs", kNothing, "size=4k") == 0;
}

}  // namespace

void LimitResource(int resource, rlim_t value) {
  const rlimit limit{value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

bool IsolateProcess() {
  constexpr int kWorld = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC;
  const bool alone =
      unshare(kWorld | CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | kWorld | CLONE_NEWPID) == 0;
  if (!alone && unshare(kWorld) != 0 && unshare(CLONE_NEWUSER | kWorld) != 0) {
    return false;
  }
  mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  bool unseen = false;
  if (alone) {
    const pid_t inner = _Fork();  // the first process of its namespace
    if (inner != 0) {
      EndAs(inner);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    unseen = MountProcesses();
    prctl(PR_SET_DUMPABLE, 0);  // the program may not change this process
    const pid_t program = _Fork();
    if (program != 0) {
      Reap(program);
    }
  }
  const HarmlessDevices devices;
  mount_attr only_read{};
  only_read.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV;
  const bool contained =
      mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &only_read, sizeof(only_read)) == 0 && unseen;
  devices.Mount(only_read);
  return contained;
}

bool RefuseSocketsAndLocks() {
#if defined(__x86_64__)
  constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif
  constexpr uint32_t kFirstOfX32 = 0x40000000;
  constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EACCES;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 15),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstOfX32, 13, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 12, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_connect, 11, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socketpair, 10, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 9, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_flock, 8, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, 6),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLK, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLKW, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLKW, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLEASE, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, kRefuse),
  };
  sock_fprog program = {static_cast<uint16_t>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool RefuseProcesses() {
  constexpr rlim_t kMostThreads = 256;
  constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EACCES;
  constexpr uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;  // the library then calls clone
  sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#if defined(__x86_64__)
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fork, 6, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_vfork, 5, 0),
#endif
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 3, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 2, 1),
    BPF_STMT(BPF_RET | BPF_K, kUnknown),
    BPF_STMT(BPF_RET | BPF_K, kRefuse),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {static_cast<uint16_t>(std::size(filter)), filter};
  LimitResource(RLIMIT_NPROC, kMostThreads);
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace sluice::planner

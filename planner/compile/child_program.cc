#include "planner/compile/child_program.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice::planner {
namespace {

constexpr int kAnswerDescriptor = 3;
constexpr int kCannotStart = 127;
constexpr int kOfSignal = 128;  // an exit code above it: of a process that a signal ended
constexpr size_t kKeptOfPrinted = 2'000;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~Descriptor() { Close(); }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) {
      close(std::exchange(fd_, -1));
    }
  }

 private:
  int fd_ = -1;
};

// Ours, and the child's. Numbers from 10, so that none is one of those that the child shall have.
struct Channel {
  Descriptor ours, theirs;
};

Result<Channel> MakeChannel() {
  // Sockets rather than pipes: writing to a program that has ended must not be a signal.
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return ResourceExhausted(fmt::format("no descriptors are left: {}", std::strerror(errno)));
  }
  const Descriptor first(pair[0]);
  const Descriptor second(pair[1]);
  constexpr int kFirstFree = 10;
  Channel channel{Descriptor(fcntl(first.get(), F_DUPFD_CLOEXEC, kFirstFree)),
                  Descriptor(fcntl(second.get(), F_DUPFD_CLOEXEC, kFirstFree))};
  if (channel.ours.get() < 0 || channel.theirs.get() < 0) {
    return ResourceExhausted(fmt::format("no descriptors are left: {}", std::strerror(errno)));
  }
  return channel;
}

void Limit(int resource, rlim_t value) {
  const rlimit limit{value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

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

// No network, nothing to write, no device (a terminal is one: what is typed into it, its shell
// does), and no other process: not even /proc shows one, whose environment may hold a password.
// What it leaves running, in whichever session, ends with it. False: some of it is not allowed, and
// the program keeps what this user may do.
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

// No socket but the three that it has: a Unix socket has a place in the file system, where no
// namespace of the network hides it (the database's, the system log's). io_uring makes sockets,
// too, and another architecture's calls have other numbers. No lock or lease of a file, which keeps
// others from writing it although it can only be read. False: the kernel has no such filters.
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

// The child after fork: only async-signal-safe calls. Does not return.
[[noreturn]] void BecomeProgram(char* const* arguments, int input, int output, int answer,
                                pid_t parent, const ProgramLimits& limits) {
  setsid();  // a process group of its own, without the terminal that the gateway may have
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(kCannotStart);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(output, STDERR_FILENO) < 0 || dup2(answer, kAnswerDescriptor) < 0 ||
      close_range(kAnswerDescriptor + 1, ~0U, 0) != 0 || chdir("/") != 0) {
    _exit(kCannotStart);
  }
  Limit(RLIMIT_AS, static_cast<rlim_t>(limits.memory_bytes));
  Limit(RLIMIT_CPU, static_cast<rlim_t>(std::ceil(limits.seconds)));
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_FSIZE, 0);
  const bool alone = IsolateProcess();
  if (!(RefuseSocketsAndLocks() && alone) && limits.contained) {
    _exit(kCannotStart);
  }
  char* const environment[] = {nullptr};
  execve(arguments[0], arguments, environment);
  _exit(kCannotStart);
}

class Exchange {
 public:
  Exchange(Descriptor input, Descriptor output, Descriptor answer, const std::string& text)
      : input_(std::move(input)),
        output_(std::move(output)),
        answer_(std::move(answer)),
        text_(text) {
    for (const Descriptor* one : {&input_, &output_, &answer_}) {
      fcntl(one->get(), F_SETFL, O_NONBLOCK);
    }
  }

  bool finished() const { return output_.get() < 0 && answer_.get() < 0; }
  int64_t bytes() const { return bytes_; }

  // Moves what there is to move; waits at most so long for it.
  void Move(int millis) {
    std::array<pollfd, 3> ready = {
        {{input_.get(), POLLOUT, 0}, {output_.get(), POLLIN, 0}, {answer_.get(), POLLIN, 0}}};
    if (poll(ready.data(), ready.size(), millis) <= 0) {
      return;
    }
    if (ready[0].revents != 0) {
      Write();
    }
    if (ready[1].revents != 0) {
      Read(&output_, &printed_);
      if (printed_.size() > 2 * kKeptOfPrinted) {
        printed_.erase(0, printed_.size() - kKeptOfPrinted);
      }
    }
    if (ready[2].revents != 0) {
      Read(&answer_, &answered_);
    }
  }

  std::string TakeAnswer() { return std::move(answered_); }
  std::string TakePrinted() { return std::move(printed_); }

 private:
  void Write() {
    const ssize_t sent =
        send(input_.get(), text_.data() + sent_, text_.size() - sent_, MSG_NOSIGNAL);
    if (sent > 0) {
      sent_ += static_cast<size_t>(sent);
    }
    if (sent_ == text_.size() || (sent < 0 && errno != EAGAIN && errno != EINTR)) {
      input_.Close();
    }
  }

  void Read(Descriptor* from, std::string* to) {
    std::array<char, 65'536> buffer;
    const ssize_t got = read(from->get(), buffer.data(), buffer.size());
    if (got > 0) {
      to->append(buffer.data(), static_cast<size_t>(got));
      bytes_ += got;
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      from->Close();
    }
  }

  Descriptor input_, output_, answer_;
  const std::string& text_;
  size_t sent_ = 0;
  int64_t bytes_ = 0;
  std::string answered_, printed_;
};

}  // namespace

Result<ProgramEnd> RunChildProgram(const std::vector<std::string>& command,
                                   const std::string& input, const ProgramLimits& limits,
                                   const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  ASSIGN_OR_RETURN(Channel in, MakeChannel());
  ASSIGN_OR_RETURN(Channel out, MakeChannel());
  ASSIGN_OR_RETURN(Channel answer, MakeChannel());
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    return ResourceExhausted(
        fmt::format("{} cannot be started: {}", command.front(), std::strerror(errno)));
  }
  if (child == 0) {
    BecomeProgram(arguments.data(), in.theirs.get(), out.theirs.get(), answer.theirs.get(), parent,
                  limits);
  }
  for (Channel* channel : {&in, &out, &answer}) {
    channel->theirs.Close();
  }
  Exchange exchange(std::move(in.ours), std::move(out.ours), std::move(answer.ours), input);
  ProgramEnd end;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(limits.seconds));
  constexpr int kPollMillis = 50;
  int status = 0;
  bool ended = false;
  bool killed = false;
  while (!ended || !exchange.finished()) {
    if (!killed && (stop.stop_requested() || exchange.bytes() > limits.output_bytes ||
                    Clock::now() > deadline)) {
      end.how = exchange.bytes() > limits.output_bytes ? ProgramEnd::How::kPrintedTooMuch
                                                       : ProgramEnd::How::kOutOfTime;
      killed = true;
    }
    if (killed || ended) {
      kill(-child, SIGKILL);  // and what it has started
    }
    if (killed && ended) {
      break;
    }
    exchange.Move(kPollMillis);
    // Reaped last of all: until then no other process can have its number.
    siginfo_t info{};
    ended = ended ||
            (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
             info.si_pid == child);
  }
  kill(-child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (stop.stop_requested()) {
    return Cancelled("the statement was cancelled while its model was compiled");
  }
  end.answer = exchange.TakeAnswer();
  end.printed = exchange.TakePrinted();
  if (!killed) {
    end.how = WIFEXITED(status) ? ProgramEnd::How::kExited : ProgramEnd::How::kKilled;
    end.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    if (end.how == ProgramEnd::How::kKilled && end.code == SIGXCPU) {
      end.how = ProgramEnd::How::kOutOfTime;
    }
  }
  return end;
}

bool CanContainPrograms() {
  ProgramLimits limits;
  limits.contained = true;
  const Result<ProgramEnd> end = RunChildProgram({"/bin/true"}, "", limits, {});
  return end.ok() && end->how == ProgramEnd::How::kExited && end->code == 0;
}

}  // namespace sluice::planner

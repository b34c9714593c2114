#include "planner/compile/child_program.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/compile/child_isolation_internal.h"

namespace sluice::planner {
namespace {

constexpr int kAnswerDescriptor = 3;
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
  LimitResource(RLIMIT_AS, static_cast<rlim_t>(limits.memory_bytes));
  LimitResource(RLIMIT_CPU, static_cast<rlim_t>(std::ceil(limits.seconds)));
  LimitResource(RLIMIT_CORE, 0);
  LimitResource(RLIMIT_FSIZE, 0);
  const bool alone = IsolateProcess();
  const bool refuses = RefuseSocketsAndLocks();
  if (limits.contained && !(alone && refuses && RefuseProcesses())) {
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

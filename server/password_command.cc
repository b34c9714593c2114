#include <fmt/core.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/utf8.h"
#include "server/commands.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/pgwire/password_file.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

// Hides what is typed while the object lives.
class HiddenInput {
 public:
  HiddenInput() : hidden_(tcgetattr(STDIN_FILENO, &before_) == 0) {
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    hidden.c_lflag |= ICANON | ECHONL;
    hidden_ = hidden_ && tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) == 0;
  }
  ~HiddenInput() {
    if (hidden_) {
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
    }
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;

 private:
  termios before_ = {};
  bool hidden_;
};

// A line of standard input, without its line end. 57014: Ctrl-C came first.
Result<std::string> ReadLine(int interrupted) {
  std::string line;
  while (true) {
    pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {interrupted, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0) {
      continue;
    }
    if (ready[1].revents != 0) {
      return Cancelled("nothing was changed");
    }
    char c = 0;
    const ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0 && line.empty()) {
      return InvalidArgument("there is no password: the input has ended");
    }
    if (got <= 0 || c == '\n') {
      break;
    }
    line += c;
  }
  if (!line.empty() && line.back() == '\r') {
    line.pop_back();
  }
  return line;
}

Result<std::string> AskPassword(const std::string& name) {
  WakeEvent interrupted;
  const SignalThread signals([&interrupted](int /*signal*/) { interrupted.Raise(); });
  if (isatty(STDIN_FILENO) == 0) {
    return ReadLine(interrupted.descriptor());
  }
  const HiddenInput hidden;
  Say(fmt::format("Password of {}: ", Printable(name)));
  ASSIGN_OR_RETURN(std::string first, ReadLine(interrupted.descriptor()));
  Say("Once more: ");
  ASSIGN_OR_RETURN(const std::string second, ReadLine(interrupted.descriptor()));
  if (first != second) {
    return InvalidArgument("the two passwords are not the same: nothing was changed");
  }
  return first;
}

Status ChangePassword(const Config& config, const PasswordOptions& options) {
  if (config.password_file.empty()) {
    return InvalidArgument("which file? There is no HOME").Hint("give --password-file FILE");
  }
  if (options.remove) {
    return pgwire::RemovePassword(config.password_file, options.name);
  }
  ASSIGN_OR_RETURN(const std::string password, AskPassword(options.name));
  return pgwire::SetPassword(config.password_file, options.name, password);
}

}  // namespace

int RunPassword(const Config& config, const PasswordOptions& options) {
  const Status changed = ChangePassword(config, options);
  if (!changed.ok()) {
    SayError(changed, "");
    return kExitStatementFailed;
  }
  Say(fmt::format("{} {} {}\n", Printable(options.name),
                  options.remove ? "is removed from" : "logs in by", config.password_file));
  return kExitOk;
}

}  // namespace sluice::server

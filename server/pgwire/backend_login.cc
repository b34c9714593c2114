#include "server/pgwire/backend_login.h"

#include <fmt/core.h>

#include <utility>

namespace sluice::server::pgwire {
namespace {

// What a server says before it is ready; a few hundred bytes usually.
constexpr size_t kMaxGreeting = size_t{1} << 20;

enum Authentication : uint32_t {
  kOk = 0,
  kPassword = 3,
};

Status NotPostgres() {
  return Status(Code::kUnavailable, "the server does not answer as PostgreSQL does")
      .SqlState("08P01");
}

std::string PasswordMessage(std::string_view text) {
  std::string body(text);
  body.push_back('\0');
  std::string message;
  AppendMessage(message, 'p', body);
  return message;
}

}  // namespace

BackendLogin::BackendLogin(StartupMessage startup, std::string password, bool private_line)
    : startup_(std::move(startup)), password_(std::move(password)), private_line_(private_line) {}

BackendLogin::~BackendLogin() = default;

std::string BackendLogin::Begin() const {
  std::string bytes;
  AppendStartup(bytes, startup_);
  return bytes;
}

Result<std::string> BackendLogin::FromServer(std::string_view bytes) {
  held_ += bytes;
  std::string answer;
  size_t at = 0;
  while (state_ == State::kUnderWay && held_.size() - at >= kHeaderBytes) {
    const std::string_view rest = std::string_view(held_).substr(at);
    const size_t length = ReadUint32(rest.substr(1));
    if (length < kLengthBytes || length > kMaxGreeting || greeting_.size() > kMaxGreeting) {
      return NotPostgres();
    }
    if (rest.size() < 1 + length) {
      break;
    }
    const std::string_view whole = rest.substr(0, 1 + length);
    ASSIGN_OR_RETURN(const std::string reply, Take(rest[0], whole.substr(kHeaderBytes), whole));
    answer += reply;
    at += whole.size();
  }
  held_.erase(0, at);
  return answer;
}

Result<std::string> BackendLogin::Take(char type, std::string_view body, std::string_view whole) {
  BodyReader reader(body);
  switch (type) {
    case 'R':
      return Authenticate(body);
    case 'E':
      refusal_ = whole;
      state_ = State::kRefused;
      return std::string();
    case 'S': {
      const std::string name(reader.String());
      parameters_[name] = reader.String();
      greeting_ += whole;
      return std::string();
    }
    case 'N':
    case 'v':
      greeting_ += whole;
      return std::string();
    case 'K':
      process_ = reader.Uint32();
      key_ = reader.Uint32();
      return std::string();
    case 'Z':
      state_ = State::kReady;
      return std::string();
    default:
      return NotPostgres();
  }
}

Result<std::string> BackendLogin::Authenticate(std::string_view body) {
  BodyReader reader(body);
  const uint32_t kind = reader.Uint32();
  switch (kind) {
    case kOk:
      return std::string();
    case kPassword:
      if (!private_line_) {
        return Status(Code::kFailedPrecondition,
                      "the server asks for the password itself over a connection without TLS")
            .SqlState("28000")
            .Hint("let the gateway's --source say sslmode=require");
      }
      return PasswordMessage(password_);
    default:
      return Unimplemented(
          fmt::format("the server asks for a way to log in (number {}) that the "
                      "gateway does not know",
                      kind));
  }
}

}  // namespace sluice::server::pgwire

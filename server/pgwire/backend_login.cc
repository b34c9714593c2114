#include "server/pgwire/backend_login.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "catalog/sql/search_path.h"
#include "server/pgwire/password.h"

namespace sluice::server::pgwire {
namespace {

// Limit for what a server sends before it is ready; usually a few hundred bytes.
constexpr size_t kMaxGreeting = size_t{1} << 20;

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

BackendLogin::BackendLogin(StartupMessage startup, BackendSecret secret, bool private_line,
                           std::string nonce)
    : startup_(std::move(startup)),
      secret_(std::move(secret)),
      private_line_(private_line),
      nonce_(std::move(nonce)) {}

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
    const size_t length = LoadBigEndian<uint32_t>(rest.substr(1));
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
  if (asks_path_ && type != 'E') {
    return TakePath(type, body);
  }
  BigEndianReader reader(body);
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
      greeting_ += whole;
      return std::string();
    case 'K':
      process_ = reader.Take<uint32_t>();
      key_ = reader.Take<uint32_t>();
      return std::string();
    case 'Z': {
      if (!let_in_) {
        return NotPostgres();
      }
      asks_path_ = catalog::IsOwnSchema(startup_.Find("user"));
      std::string question;
      if (asks_path_) {
        AppendQuery(question, catalog::kSearchPathOfLogin);
      } else {
        state_ = State::kReady;
      }
      return question;
    }
    default:
      return NotPostgres();
  }
}

// The answer to the question for the search_path: at most one row of one text.
Result<std::string> BackendLogin::TakePath(char type, std::string_view body) {
  if (type == 'D') {
    BigEndianReader reader(body);
    reader.Take<uint16_t>();
    const std::string_view path = reader.Bytes(reader.Take<uint32_t>());
    if (!reader.at_end()) {
      return NotPostgres();
    }
    std::string other = catalog::WithoutSchemaOfUser(path);
    if (other != path) {
      other_path_ = std::move(other);
    }
  } else if (type == 'Z') {
    state_ = other_path_.has_value() ? State::kMisled : State::kReady;
  }
  return std::string();
}

StartupMessage BackendLogin::other_startup() const {
  StartupMessage startup = startup_;
  std::erase_if(startup.parameters, [](const auto& given) { return given.first == "search_path"; });
  startup.parameters.emplace_back("search_path", other_path_.value_or(""));
  return startup;
}

Result<std::string> BackendLogin::Authenticate(std::string_view body) {
  BigEndianReader reader(body);
  const auto kind = static_cast<Authentication>(reader.Take<uint32_t>());
  asked_ = asked_ || kind != Authentication::kOk;
  if (secret_.keys.has_value() &&
      (kind == Authentication::kPassword || kind == Authentication::kMd5)) {
    return Status(Code::kFailedPrecondition,
                  "the server asks for the password, which the gateway has not seen")
        .SqlState("28000")
        .Hint("let pg_hba.conf say scram-sha-256, or start the gateway with --auth password");
  }
  switch (kind) {
    case Authentication::kOk:
      RETURN_IF_ERROR(LetIn());
      return std::string();
    case Authentication::kPassword:
      if (!private_line_) {
        return Status(Code::kFailedPrecondition,
                      "the server asks for the password itself over a connection without TLS")
            .SqlState("28000")
            .Hint("let the gateway's --source say sslmode=require");
      }
      return PasswordMessage(secret_.password);
    case Authentication::kMd5: {
      std::array<char, 4> salt = {};
      const std::string_view bytes = reader.Bytes(salt.size());
      if (!reader.ok()) {
        return NotPostgres();
      }
      std::copy(bytes.begin(), bytes.end(), salt.begin());
      return PasswordMessage(Md5Password(startup_.Find("user"), secret_.password, salt));
    }
    case Authentication::kScram:
      return BeginScram(reader);
    case Authentication::kScramContinue: {
      if (scram_ == nullptr) {
        return NotPostgres();
      }
      challenge_ = body.substr(kLengthBytes);
      state_ = State::kProving;
      return std::string();
    }
    case Authentication::kScramFinal:
      if (scram_ == nullptr) {
        return NotPostgres();
      }
      RETURN_IF_ERROR(scram_->Verify(body.substr(kLengthBytes)));
      proved_ = true;
      return std::string();
    default:
      return Unimplemented(
          fmt::format("the server asks for a way to log in (number {}) that the "
                      "gateway does not know",
                      static_cast<uint32_t>(kind)));
  }
}

Result<std::string> BackendLogin::Prove() {
  state_ = State::kUnderWay;
  ASSIGN_OR_RETURN(const std::string answer, scram_->Final(challenge_));
  std::string message;
  AppendMessage(message, 'p', answer);
  return message;
}

Status BackendLogin::LetIn() {
  if (scram_ != nullptr && !proved_) {
    return Status(Code::kPermissionDenied, "the server does not prove that it knows the password")
        .SqlState("28000")
        .Detail("it ends the login before: another server may answer in its place");
  }
  if (secret_.keys.has_value() && !asked_) {
    return Status(Code::kPermissionDenied,
                  fmt::format("PostgreSQL let role \"{}\" in without asking for the password",
                              startup_.Find("user")))
        .SqlState("28000")
        .Hint("let pg_hba.conf ask for passwords (scram-sha-256) where this login comes from");
  }
  let_in_ = true;
  return OkStatus();
}

Result<std::string> BackendLogin::BeginScram(BigEndianReader& reader) {
  if (scram_ != nullptr) {
    return NotPostgres();
  }
  std::vector<std::string> offered;
  for (std::string name(reader.String()); !name.empty(); name = reader.String()) {
    offered.push_back(name);
  }
  if (secret_.keys.has_value()) {
    scram_ = std::make_unique<ScramClient>(*secret_.keys, channel_binding_, nonce_);
  } else {
    ASSIGN_OR_RETURN(std::string password, PreparePassword(secret_.password));
    scram_ = std::make_unique<ScramClient>(std::move(password), channel_binding_, nonce_);
  }
  ASSIGN_OR_RETURN(const ScramClient::Begin begin, scram_->First(offered));
  std::string body = begin.mechanism;
  body.push_back('\0');
  AppendUint32(body, static_cast<uint32_t>(begin.message.size()));
  body += begin.message;
  std::string message;
  AppendMessage(message, 'p', body);
  return message;
}

}  // namespace sluice::server::pgwire

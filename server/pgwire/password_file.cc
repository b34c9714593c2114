#include "server/pgwire/password_file.h"

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/log.h"
#include "server/pgwire/password.h"
#include "server/pgwire/private_files.h"
#include "server/pgwire/random_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr std::string_view kSecretComment = "# of users who are not here: ";
constexpr size_t kMostNameBytes = 63;  // the limit of PostgreSQL's role names
constexpr PrivateKind kPasswords = {
    .what = "passwords",
    .renewal = "give its users new passwords",
    .secret = "what checks the users' passwords",
    .most_bytes = size_t{1} << 20,
};

// Takes leading blanks and "..." off the front of a line; nullopt: there is no quoted text.
std::optional<std::string> TakeQuoted(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with('"')) {
    return std::nullopt;
  }
  std::string text;
  for (size_t at = 1; at < line.size(); ++at) {
    if (line[at] != '"') {
      text += line[at];
    } else if (at + 1 < line.size() && line[at + 1] == '"') {
      text += line[++at];
    } else {
      line.remove_prefix(at + 1);
      return text;
    }
  }
  return std::nullopt;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    quoted += c == '"' ? "\"" : "";
  }
  return quoted + '"';
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// nullopt: the file does not exist.
Result<std::optional<PasswordFile>> ReadPasswordFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadPrivateFile(path, kPasswords));
  if (!text.has_value()) {
    return std::optional<PasswordFile>();
  }
  Result<PasswordFile> file = ParsePasswordFile(*text);
  RETURN_IF_ERROR(file.status().Because(fmt::format("'{}'", path)));
  return std::optional(*std::move(file));
}

Result<PasswordFile> NeedPasswordFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::optional<PasswordFile> file, ReadPasswordFile(path));
  if (!file.has_value()) {
    return NotFound(fmt::format("there is no file of passwords '{}'", path))
        .Hint("'sluice password NAME' makes it, and its first user");
  }
  return *std::move(file);
}

// An unknown user gets a verifier that no password fits.
ScramVerifier VerifierOf(const PasswordFile& file, std::string_view secret, std::string_view name) {
  const auto found = file.users.find(name);
  Result<ScramVerifier> verifier = found == file.users.end()
                                       ? Result<ScramVerifier>(NotFound("no such user"))
                                       : ParseScramVerifier(found->second);
  if (!verifier.ok()) {
    log::Info("no password role={}", log::Field(name));
    // Of a file that another program has written: as its first user's.
    const Result<ScramVerifier> other = file.users.empty()
                                            ? Result<ScramVerifier>(NotFound("no user"))
                                            : ParseScramVerifier(file.users.begin()->second);
    return MockScramVerifier(file.secret.empty() ? secret : file.secret, name,
                             other.ok() ? other->iterations : kOwnScramIterations);
  }
  return *std::move(verifier);
}

class FileVerifiers final : public Verifiers {
 public:
  explicit FileVerifiers(std::string path) : path_(std::move(path)) {}

  // On the calling thread: it is a small local file.
  void Find(std::string role, Then then) override {
    const Result<PasswordFile> file = NeedPasswordFile(path_);
    if (!file.ok()) {
      log::Warn("nobody can log in: {}", file.status().ToString());
      then(Status(Code::kUnavailable, "the gateway cannot read its file of passwords")
               .SqlState("58030"));
      return;
    }
    then(VerifierOf(*file, secret_, role));
  }

 private:
  const std::string path_;
  const std::string secret_ = RandomToken();  // for a file that another program has written
};

}  // namespace

Result<PasswordFile> ParsePasswordFile(std::string_view text) {
  PasswordFile file;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(kSecretComment)) {
      file.secret = line.substr(kSecretComment.size());
    }
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos || line[begin] == '#') {
      continue;
    }
    const std::optional<std::string> name = TakeQuoted(line);
    const std::optional<std::string> verifier =
        name.has_value() ? TakeQuoted(line) : std::optional<std::string>();
    const Status fits = verifier.has_value() ? ParseScramVerifier(*verifier).status() : OkStatus();
    if (!verifier.has_value() || !fits.ok() ||
        line.find_first_not_of(" \t\r") != std::string_view::npos) {
      return InvalidArgument(fmt::format("line {} is no user and SCRAM verifier", number))
          .Hint("expected is \"name\" \"SCRAM-SHA-256$...\", as 'sluice password' writes it");
    }
    if (!file.users.emplace(*name, *verifier).second) {
      return InvalidArgument(fmt::format("line {}: user \"{}\" is there twice", number, *name));
    }
  }
  return file;
}

std::string PrintPasswordFile(const PasswordFile& file) {
  std::string text = fmt::format("{}{}\n", kSecretComment, file.secret);
  for (const auto& [name, verifier] : file.users) {
    text += fmt::format("{} {}\n", Quoted(name), Quoted(verifier));
  }
  return text;
}

Status SetPassword(const std::string& path, const std::string& name, std::string_view password) {
  if (name.empty() || name.size() > kMostNameBytes ||
      name.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
    return InvalidArgument(
        fmt::format("a user's name is one line of 1 to {} bytes", kMostNameBytes));
  }
  if (password.empty()) {
    return InvalidArgument("a password is not empty");
  }
  ASSIGN_OR_RETURN(const std::string prepared, PreparePassword(password));
  const std::string verifier = MakeScramVerifier(prepared, RandomSalt());
  const std::string folder = FolderOf(path);
  RETURN_IF_ERROR(PrepareFolder(folder, kPasswords));
  ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Take(folder));
  ASSIGN_OR_RETURN(std::optional<PasswordFile> there, ReadPasswordFile(path));
  PasswordFile file = there.has_value() ? *std::move(there) : PasswordFile();
  file.secret = file.secret.empty() ? RandomToken() : file.secret;
  file.users[name] = verifier;
  return ReplacePrivateFile(path, PrintPasswordFile(file));
}

Status RemovePassword(const std::string& path, const std::string& name) {
  ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Take(FolderOf(path)));
  ASSIGN_OR_RETURN(PasswordFile file, NeedPasswordFile(path));
  if (file.users.erase(name) == 0) {
    return NotFound(fmt::format("there is no user \"{}\" in '{}'", name, path)).SqlState("42704");
  }
  return ReplacePrivateFile(path, PrintPasswordFile(file));
}

Result<std::unique_ptr<Verifiers>> OpenPasswordFile(const std::string& path) {
  RETURN_IF_ERROR(NeedPasswordFile(path).status());
  return std::unique_ptr<Verifiers>(std::make_unique<FileVerifiers>(path));
}

Result<std::vector<std::string>> UsersOf(const std::string& path) {
  ASSIGN_OR_RETURN(const PasswordFile file, NeedPasswordFile(path));
  std::vector<std::string> names;
  for (const auto& [name, verifier] : file.users) {
    names.push_back(name);
  }
  return names;
}

Result<bool> IsPassword(const std::string& path, const std::string& name,
                        std::string_view password) {
  ASSIGN_OR_RETURN(const PasswordFile file, NeedPasswordFile(path));
  return FitsScramVerifier(VerifierOf(file, "", name), password);
}

}  // namespace sluice::server::pgwire

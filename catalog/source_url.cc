#include "catalog/source_url.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"

namespace sluice::catalog {
namespace {

std::string PercentDecode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      decoded += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::string PercentEncode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

// Removes "password=..." (the key) from "a=b&password=c&d=e".
std::string WithoutSetting(std::string_view key, std::string_view settings, std::string* password) {
  const std::string prefix = std::string(key) + "=";
  std::string kept;
  while (!settings.empty()) {
    const size_t end = std::min(settings.find('&'), settings.size());
    const std::string_view setting = settings.substr(0, end);
    settings.remove_prefix(std::min(end + 1, settings.size()));
    if (setting.starts_with(prefix)) {
      *password = PercentDecode(setting.substr(prefix.size()));
    } else {
      kept += (kept.empty() ? "" : "&") + std::string(setting);
    }
  }
  return kept;
}

constexpr std::string_view kBlanks = " \t\r\n";

size_t SkipBlanks(std::string_view text, size_t from) {
  return std::min(text.find_first_not_of(kBlanks, from), text.size());
}

bool IsSecretName(std::string_view name) {
  const std::string lower = LowerAscii(name);
  for (const std::string_view ending : {"password", "passwd", "pwd", "secret", "token"}) {
    if (lower.ends_with(ending)) {
      return true;
    }
  }
  return false;
}

// Where the name of a secret setting begins, in "NAME=VALUE", also after "?" or "&"; npos: none.
size_t FindSecretSetting(std::string_view word, size_t from = 0) {
  for (size_t equals = word.find('=', from); equals != std::string_view::npos;
       equals = word.find('=', equals + 1)) {
    const size_t before = word.find_last_of("?&='\"", equals == 0 ? 0 : equals - 1);
    const size_t name = before == std::string_view::npos ? 0 : before + 1;
    size_t name_end = equals;
    while (name_end > name && kBlanks.find(word[name_end - 1]) != std::string_view::npos) {
      --name_end;
    }
    // libpq decodes the names of settings, too.
    if (IsSecretName(PercentDecode(word.substr(name, name_end - name)))) {
      return name;
    }
  }
  return std::string_view::npos;
}

// The position after the closing quote of a value that begins with one; 0 if it does not.
size_t QuotedEnd(std::string_view text, size_t value) {
  if (value >= text.size() || (text[value] != '\'' && text[value] != '"')) {
    return 0;
  }
  for (size_t i = value + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[value]) {
      return i + 1;
    }
  }
  return text.size();
}

std::string WordWithoutSecrets(std::string_view word) {
  constexpr std::string_view kHidden = "***";
  std::string shown;
  // "scheme://user:PASSWORD@host": the last '@', as a password may contain one.
  const size_t scheme = word.find("://");
  if (scheme != std::string_view::npos) {
    size_t question = word.find('?', scheme);
    if (word.find('@', question) < word.find('=', question)) {
      question = std::string_view::npos;  // of the password
    }
    const size_t at = word.rfind('@', question);
    const size_t colon = word.find(':', scheme + 3);
    if (at != std::string_view::npos && at > scheme && colon < at) {
      shown = word.substr(0, colon);
      word.remove_prefix(at);
    }
  }
  for (size_t name = 0; (name = FindSecretSetting(word)) != std::string_view::npos;) {
    const size_t value = word.find('=', name) + 1;
    const size_t quoted = QuotedEnd(word, SkipBlanks(word, value));
    const size_t end = quoted > 0 ? quoted : std::min(word.find('&', value), word.size());
    shown += word.substr(0, value);
    shown += kHidden;
    word.remove_prefix(end);
  }
  return shown.append(word);
}

Result<SourceUrl> ParsePostgres(std::string_view scheme, std::string_view rest) {
  SourceUrl parsed;
  parsed.kind = SourceUrl::Kind::kPostgres;
  const size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, authority_end);
  std::string_view tail = rest.substr(authority_end);
  if (tail.find('@') < tail.find('=')) {
    // The part after a '/' or '?' in the password would be taken for a port and quoted in an error.
    return InvalidArgument("the password in the data source's URL holds a '/' or a '?'")
        .Hint("write %2F and %3F there, %40 for an '@' of a database's name");
  }
  std::string user;
  // The last '@': a password that was not percent-encoded may contain one.
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    std::string_view credentials = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    if (const size_t colon = credentials.find(':'); colon != std::string_view::npos) {
      parsed.password = PercentDecode(credentials.substr(colon + 1));
      credentials = credentials.substr(0, colon);
    }
    user = std::string(credentials) + "@";
  }
  std::string settings;
  if (const size_t question = tail.find('?'); question != std::string_view::npos) {
    settings = WithoutSetting("password", tail.substr(question + 1), &parsed.password);
    tail = tail.substr(0, question);
  }
  parsed.text = fmt::format("{}{}{}{}{}{}", scheme, user, authority, tail,
                            settings.empty() ? "" : "?", settings);
  return parsed;
}

// The end of the value that begins at `value`: a blank without a backslash before it.
size_t ValueEnd(std::string_view text, size_t value) {
  size_t end = std::min(text.find_first_of(kBlanks, value), text.size());
  while (end < text.size() && end > value && text[end - 1] == '\\') {
    end = std::min(text.find_first_of(kBlanks, end + 1), text.size());
  }
  return std::max(end, QuotedEnd(text, value));
}

// Whether a URL's password continues after the blank that ends the word.
bool HasBrokenPassword(std::string_view word, std::string_view rest) {
  const size_t scheme = word.find("://");
  if (scheme == std::string_view::npos) {
    return false;
  }
  const std::string_view authority = word.substr(scheme + 3);
  return authority.find(':') != std::string_view::npos &&
         authority.find_first_of("/?@") == std::string_view::npos &&
         rest.find('@') < rest.find('/');
}

}  // namespace

std::string WithoutSecrets(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t blanks = SkipBlanks(text, 0);
    shown += text.substr(0, blanks);
    text.remove_prefix(blanks);
    size_t end = std::min(text.find_first_of(kBlanks), text.size());
    const size_t spaced = SkipBlanks(text, end);  // "password = value"
    const bool apart = spaced < text.size() && text[spaced] == '=';
    size_t name = FindSecretSetting(text.substr(0, end));
    if (apart && IsSecretName(text.substr(0, end))) {
      name = 0;
    }
    if (name != std::string_view::npos) {
      const size_t equals = text.find('=', name);
      const size_t value = SkipBlanks(text, equals + 1);
      end = std::max(end, ValueEnd(text, value));
    } else if (HasBrokenPassword(text.substr(0, end), text.substr(end))) {
      end = std::min(text.find_first_of(kBlanks, text.find('@', end)), text.size());
    }
    shown += WordWithoutSecrets(text.substr(0, end));
    text.remove_prefix(end);
  }
  return shown;
}

namespace {

// "postgresql://", "user", "host:port/database", "setting=value&...", of a URL without a password.
struct UrlParts {
  std::string_view scheme, user, rest, settings;
};

UrlParts PartsOf(std::string_view url) {
  UrlParts parts;
  const size_t begin = url.find("://") + 3;
  parts.scheme = url.substr(0, begin);
  url.remove_prefix(begin);
  const size_t question = std::min(url.find('?'), url.size());
  parts.settings = url.substr(std::min(question + 1, url.size()));
  url = url.substr(0, question);
  const size_t at = url.substr(0, url.find('/')).rfind('@');
  parts.user = url.substr(0, at == std::string_view::npos ? 0 : at);
  parts.rest = url.substr(at == std::string_view::npos ? 0 : at + 1);
  return parts;
}

}  // namespace

std::string_view SchemeOf(std::string_view url) {
  constexpr size_t kLongest = 16;
  const std::string_view scheme = url.substr(0, url.find("://"));
  const bool plausible =
      scheme.size() < url.size() && scheme.size() <= kLongest &&
      std::all_of(scheme.begin(), scheme.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-';
      });
  return plausible ? scheme : std::string_view();
}

std::string RoleIn(std::string_view url) {
  const UrlParts parts = PartsOf(url);
  std::string role = PercentDecode(parts.user);
  WithoutSetting("user", parts.settings, &role);  // the last one counts
  return role;
}

std::string DatabaseIn(std::string_view url) {
  const UrlParts parts = PartsOf(url);
  const size_t slash = std::min(parts.rest.find('/'), parts.rest.size());
  std::string database = PercentDecode(parts.rest.substr(std::min(slash + 1, parts.rest.size())));
  WithoutSetting("dbname", parts.settings, &database);  // the last one counts
  return database;
}

bool IsSameServer(std::string_view one, std::string_view other) {
  const UrlParts a = PartsOf(one), b = PartsOf(other);
  if (a.rest.substr(0, a.rest.find('/')) != b.rest.substr(0, b.rest.find('/'))) {
    return false;
  }
  for (const char* const setting : {"host", "hostaddr", "port"}) {
    std::string of_a, of_b;
    WithoutSetting(setting, a.settings, &of_a);
    WithoutSetting(setting, b.settings, &of_b);
    if (of_a != of_b) {
      return false;
    }
  }
  return true;
}

std::string WithRole(std::string_view url, std::string_view role) {
  const UrlParts parts = PartsOf(url);
  std::string other;
  const std::string settings = WithoutSetting("user", parts.settings, &other);
  return fmt::format("{}{}@{}{}{}", parts.scheme, PercentEncode(role), parts.rest,
                     settings.empty() ? "" : "?", settings);
}

std::string WithDatabase(std::string_view url, std::string_view database) {
  const UrlParts parts = PartsOf(url);
  std::string other;
  const std::string settings = WithoutSetting("dbname", parts.settings, &other);
  return fmt::format("{}{}{}{}/{}{}{}", parts.scheme, parts.user, parts.user.empty() ? "" : "@",
                     parts.rest.substr(0, parts.rest.find('/')), PercentEncode(database),
                     settings.empty() ? "" : "?", settings);
}

Result<SourceUrl> ParseSourceUrl(std::string_view url) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (url.starts_with(kSqlite)) {
    SourceUrl parsed;
    std::string_view path = url.substr(kSqlite.size());
    if (path.starts_with("///")) {
      path.remove_prefix(2);  // sqlite:///absolute/path, as other programs spell it
    } else if (path.starts_with("//")) {
      return InvalidArgument("a SQLite database has no host")
          .Hint("expected sqlite:PATH or sqlite:///absolute/path");
    }
    const size_t settings = path.find('?');
    if (settings != std::string_view::npos && path.find('=', settings) != std::string_view::npos) {
      return InvalidArgument("a SQLite database takes no settings ('?' after its path)")
          .Hint("expected sqlite:PATH");
    }
    if (path.empty()) {
      return InvalidArgument("the data source has no path; expected sqlite:PATH");
    }
    parsed.path = path;
    parsed.text = fmt::format("{}{}", kSqlite, path);
    return parsed;
  }
  for (const std::string_view scheme : {"postgresql://", "postgres://"}) {
    if (url.starts_with(scheme)) {
      return ParsePostgres("postgresql://", url.substr(scheme.size()));
    }
  }
  const std::string_view scheme = SchemeOf(url);
  return InvalidArgument(scheme.empty() ? "the data source is not a URL of a known kind"
                                        : fmt::format("unknown kind of data source '{}'", scheme))
      .Hint("expected sqlite:PATH or postgresql://user@host:port/database");
}

std::string WithSocket(std::string_view url, std::string_view folder, std::string_view port) {
  const UrlParts parts = PartsOf(url);
  std::string settings(parts.settings);
  std::string other;
  for (const char* gone : {"host", "hostaddr", "port", "sslmode", "sslrootcert", "sslcert",
                           "sslkey", "channel_binding", "gssencmode"}) {
    settings = WithoutSetting(gone, settings, &other);
  }
  const size_t slash = std::min(parts.rest.find('/'), parts.rest.size());
  return fmt::format("{}{}{}{}?host={}&port={}{}{}", parts.scheme, parts.user,
                     parts.user.empty() ? "" : "@", parts.rest.substr(slash), PercentEncode(folder),
                     port, settings.empty() ? "" : "&", settings);
}

std::string WithPasswordFile(std::string_view url, std::string_view path) {
  const Result<SourceUrl> parsed = ParseSourceUrl(url);
  if (!parsed.ok() || parsed->password.empty()) {
    return std::string(url);
  }
  const std::string other = WithoutPasswordFile(parsed->text);
  return fmt::format("{}{}passfile={}", other, other.find('?') == std::string::npos ? '?' : '&',
                     PercentEncode(path));
}

std::string PasswordFileIn(std::string_view url) {
  std::string file;
  WithoutSetting("passfile", PartsOf(url).settings, &file);
  return file;
}

std::string WithoutPasswordFile(std::string_view url) {
  const size_t question = std::min(url.find('?'), url.size());
  std::string file;
  const std::string settings =
      WithoutSetting("passfile", url.substr(std::min(question + 1, url.size())), &file);
  return fmt::format("{}{}{}", url.substr(0, question), settings.empty() ? "" : "?", settings);
}

}  // namespace sluice::catalog

#include "catalog/source_url.h"

#include <fmt/core.h>

#include <algorithm>

namespace sluice::catalog {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

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

// Takes "password=..." out of "a=b&password=c&d=e".
std::string WithoutPassword(std::string_view settings, std::string* password) {
  constexpr std::string_view kKey = "password=";
  std::string kept;
  while (!settings.empty()) {
    const size_t end = std::min(settings.find('&'), settings.size());
    const std::string_view setting = settings.substr(0, end);
    settings.remove_prefix(std::min(end + 1, settings.size()));
    if (setting.starts_with(kKey)) {
      *password = PercentDecode(setting.substr(kKey.size()));
    } else {
      kept += (kept.empty() ? "" : "&") + std::string(setting);
    }
  }
  return kept;
}

SourceUrl ParsePostgres(std::string_view scheme, std::string_view rest) {
  SourceUrl parsed;
  parsed.kind = SourceUrl::Kind::kPostgres;
  const size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, authority_end);
  std::string_view tail = rest.substr(authority_end);
  std::string user;
  // The last '@': a password that was not percent-encoded may hold one.
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
    settings = WithoutPassword(tail.substr(question + 1), &parsed.password);
    tail = tail.substr(0, question);
  }
  parsed.text = fmt::format("{}{}{}{}{}{}", scheme, user, authority, tail,
                            settings.empty() ? "" : "?", settings);
  return parsed;
}

}  // namespace

Result<SourceUrl> ParseSourceUrl(std::string_view url) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (url.starts_with(kSqlite)) {
    SourceUrl parsed;
    std::string_view path = url.substr(kSqlite.size());
    if (path.starts_with("///")) {
      path.remove_prefix(2);  // sqlite:///absolute/path, as other programs write it
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
  // Only the scheme is repeated: what follows may hold a password.
  const std::string_view shown = url.substr(0, std::min(url.find_first_of(":/@"), url.size()));
  return InvalidArgument(fmt::format("unknown kind of data source '{}'", shown))
      .Hint("expected sqlite:PATH or postgresql://user@host:port/database");
}

}  // namespace sluice::catalog

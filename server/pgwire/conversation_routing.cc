#include <fmt/core.h>

#include <set>
#include <utility>

#include "server/pgwire/conversation.h"

// Whose a script is: found here if it is short, and by the host, on another thread, if it is long.
namespace sluice::server::pgwire {
namespace {

// Reading so much takes about a millisecond, for which other sessions wait.
constexpr size_t kShortBytes = 16 << 10;

}  // namespace

// Whether EXECUTE runs all of a prepared statement of ours.
bool Conversation::IsPreparedWhole(std::string_view name) const {
  const auto known = statements_.find(name);
  return known != statements_.end() && !known->second.inside.has_value();
}

std::optional<Route> Conversation::RouteOf(std::string_view sql) const {
  if (!readable_) {
    return std::nullopt;
  }
  std::optional<Route> route =
      known_route_.has_value() && known_route_->sql == sql
          ? known_route_->route
          : RouteScript(sql, [this](std::string_view name) { return IsPreparedWhole(name); });
  const auto encoding = parameters_.find("client_encoding");
  if (route.has_value() && encoding != parameters_.end() && encoding->second != "UTF8" &&
      encoding->second != "SQL_ASCII" && !encoding_.has_value()) {
    route->error = Unimplemented(fmt::format("a statement of Sluice is sent in UTF-8 or an "
                                             "encoding of one byte a character, and the "
                                             "client_encoding of this session is {}",
                                             encoding->second))
                       .Hint("SET client_encoding = 'UTF8' (\\encoding UTF8 in psql)");
  }
  return route;
}

// True: no message is read until the host has found the route of this one.
bool Conversation::RoutesAside(char type, std::string_view body) {
  if (type != 'Q' && type != 'P') {
    return false;
  }
  if (!readable_ || body.size() <= kShortBytes) {
    known_route_.reset();
    return false;
  }
  Result<std::string_view> sql = std::string_view();
  if (type == 'Q') {
    sql = ReadQuery(body);
  } else if (const Result<ParseMessage> parse = ReadParse(body); parse.ok()) {
    sql = parse->sql;
  }
  Result<std::string> text = sql.ok() ? Utf8Of(*sql) : Result<std::string>(sql.status());
  if (!text.ok() || (known_route_.has_value() && known_route_->sql == *text)) {
    return false;
  }
  std::set<std::string, std::less<>> prepared;
  for (const auto& [name, statement] : statements_) {
    if (IsPreparedWhole(name)) {
      prepared.insert(name);
    }
  }
  known_route_.reset();
  routing_ = true;
  host_.FindRoute(*std::move(text), std::move(prepared));
  return true;
}

void Conversation::Routed(std::string sql, std::optional<Route> route) {
  routing_ = false;
  known_route_ = KnownRoute{std::move(sql), std::move(route)};
  ProcessHeld();
}

}  // namespace sluice::server::pgwire

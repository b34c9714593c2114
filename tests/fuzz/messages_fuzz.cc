#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/pgwire/messages.h"
#include "server/pgwire/sql/bound_text.h"
#include "server/pgwire/sql/prepared_text.h"
#include "server/pgwire/sql/router.h"
#include "tests/fuzz/target.h"

// The bodies of a client's messages, with any content, and the texts in them: a message that is
// read holds no more than was sent, what is written is read back unchanged, and a script's parts
// lie inside the script, one after the other.
namespace sluice::server::pgwire {
namespace {

bool Lies(const Span& span, std::string_view text) {
  return span.begin >= 0 && span.begin <= span.end && span.end <= static_cast<int64_t>(text.size());
}

void CheckMessages(std::string_view body) {
  if (const auto parse = ReadParse(body); parse.ok()) {
    if (parse->types.size() * sizeof(uint32_t) > body.size()) {
      Broken("more types than were sent");
    }
    static_cast<void>(BindText(parse->sql, parse->types, {}, nullptr));
  }
  if (const auto bind = ReadBind(body);
      bind.ok() && bind->values.size() * sizeof(uint32_t) > body.size()) {
    Broken("more values than were sent");
  }
  static_cast<void>(ReadQuery(body));
  static_cast<void>(ReadTarget(body));
  static_cast<void>(ReadExecute(body));
  static_cast<void>(ReadPassword(body));
  static_cast<void>(ReadSaslInitial(body));
  static_cast<void>(ReadError(body));
  const auto startup = ReadStartup(body);
  if (!startup.ok() || startup->code != kProtocol3) {
    return;
  }
  std::string written;
  AppendStartup(written, *startup);
  const auto again = ReadStartup(std::string_view(written).substr(kLengthBytes));
  if (!again.ok() || again->parameters != startup->parameters) {
    Broken("a startup message is not read as it was written");
  }
}

void CheckTexts(std::string_view sql) {
  const auto route = RouteScript(sql, [](std::string_view name) { return name == "p"; });
  if (route.has_value() && route->error.ok()) {
    int64_t end = 0;
    for (const Part& part : route->parts) {
      if (!Lies(part.span, sql) || part.span.begin < end ||
          (part.inside.has_value() &&
           (!Lies(*part.inside, sql) || part.inside->begin < part.span.begin ||
            part.inside->end > part.span.end))) {
        Broken("a part does not lie in its script");
      }
      end = part.span.end;
    }
  }
  static_cast<void>(DeallocatedName(sql));
  if (const auto prepare = ReadPrepareText(sql);
      prepare.has_value() && prepare->name.empty() && sql.find("\"\"") == std::string_view::npos) {
    Broken("a prepared statement without a name");
  }
  const auto execute = ReadExecuteText(sql);
  if (!execute.has_value()) {
    return;
  }
  for (const Span& argument : execute->arguments) {
    if (!Lies(argument, sql)) {
      Broken("an argument does not lie in its text");
    }
  }
  static_cast<void>(BindArguments(sql, {}, {"int"}, sql, *execute, {{23}, {std::string("1")}}));
}

}  // namespace
}  // namespace sluice::server::pgwire

FUZZ_TARGET(messages) {
  using namespace sluice::server::pgwire;  // NOLINT
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  CheckMessages(input);
  CheckTexts(input);
  return 0;
}

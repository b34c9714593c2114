#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/postgres/postgres_connection_internal.h"

// A select is read on connections of the pool, and means there what it means in the session: what
// the session has SET is captured from its own connection and replayed on them.
namespace sluice::catalog {

class DatasetSpec;

// Name and value, in the order in which they are set: whose rights count comes last.
using SessionSettings = std::vector<std::pair<std::string, std::string>>;

// Names of settings of the user's own making (app.tenant). PostgreSQL does not list them, so they
// are looked for in what the session has run: every dotted name that a statement SETs or quotes.
class SettingNames {
 public:
  // What a statement names by SET or beside set_config is always kept, up to kMostNames; of other
  // quoted words (addresses, file names) only the first kMostGuesses.
  static constexpr size_t kMostGuesses = 1'000;
  static constexpr size_t kMostNames = 10'000;

  void Add(std::string_view statement);
  void Clear() { names_.clear(); }
  const std::set<std::string>& names() const { return names_; }

 private:
  void Add(std::string_view statement, int depth);
  std::set<std::string> names_;
};

struct CapturedSession {
  SessionSettings settings;
  std::chrono::milliseconds statement_timeout{0};  // that was SET; 0: none
  bool has_temporary = false;  // tables, views, sequences or types of this session only
};

// `session` is the session's own connection, outside a transaction. An error names what cannot be
// replayed (0A000).
Result<CapturedSession> CaptureSession(PostgresConnection& session, const SettingNames& names);

// Settings that decide how values look as text. Where all cells come as text (over TLS), or are
// copied as text into a table, one that we do not read back exactly is an error (0A000); `purpose`
// ends the message. Asks the server.
Status CheckReadableAsText(PostgresConnection& connection, std::string_view purpose);
// Whether all cells that come over `connection` come as text.
bool OnlyText(const PostgresConnection& connection);

// Before anything of the select runs on `connection`, which is as it was opened.
Status ReplaySession(PostgresConnection& connection, const SessionSettings& settings);

// 25001 or 25P02 inside a transaction: what it has changed is seen by its own connection only, and
// what we make would survive its ROLLBACK.
Status CheckNoPostgresTransaction(const PostgresConnection& session);

// Refuses a select that reads what only `session` has: 0A000 with its name. Runs nothing of it.
Status CheckNothingTemporary(PostgresConnection& session, std::string_view select);

void PutSession(const SessionSettings& settings, DatasetSpec* spec);
SessionSettings SessionOf(const DatasetSpec& spec);

}  // namespace sluice::catalog

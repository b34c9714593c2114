#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/postgres/postgres_connection_internal.h"

// Makes a select that is read on pooled connections mean the same as in the session: the session's
// settings are captured from its own connection and replayed on them.
namespace sluice::catalog {

class DatasetSpec;

// Name and value, in the order in which they are set: the role comes last.
using SessionSettings = std::vector<std::pair<std::string, std::string>>;

// Names of settings that the user made up (app.tenant). PostgreSQL does not list them, so they are
// searched for in the session's statements: every dotted name that a statement SETs or quotes.
class SettingNames {
 public:
  // Names after SET or in set_config are always kept, up to kMaxNames; of other quoted words
  // (addresses, file names) only the first kMaxGuesses.
  static constexpr size_t kMaxGuesses = 1'000;
  static constexpr size_t kMaxNames = 10'000;

  void Add(std::string_view statement);
  void Clear() { names_.clear(); }
  const std::set<std::string>& names() const { return names_; }

 private:
  void Add(std::string_view statement, int depth);
  std::set<std::string> names_;
};
// a.b, a.b.c: two or more names with a dot between them.
bool IsDottedName(std::string_view text);

// The names of settings that policies, views and functions of the database read or set. Runs in
// the session's transaction, reads the catalog only, and takes no lock on what others made.
Result<std::set<std::string>> SettingsNamedInDatabase(PostgresConnection& session);

struct CapturedSession {
  SessionSettings settings;
  std::chrono::milliseconds statement_timeout{0};  // in the session; 0: none
  bool has_temporary = false;  // tables, views, sequences or types of this session only
};

// The time limit of the session's statements, whoever has set it; 0: none.
Result<std::chrono::milliseconds> StatementTimeout(PostgresConnection& session);
// The values of settings in the session, as DataSource::BeginStatementIn returns them, the time
// limit of its statements (0: none) and its current_user. `begins_reading`: begins the transaction
// in which the statement reads its rows through the session, unless the session's own is open.
Result<DataSource::SettingValues> AskForSettings(PostgresConnection& session,
                                                 const std::vector<std::string>& names,
                                                 bool begins_reading,
                                                 std::chrono::milliseconds* statement_timeout,
                                                 std::string* acts_as);
// The same two alone.
Status AskForRole(PostgresConnection& session, std::string* acts_as,
                  std::chrono::milliseconds* statement_timeout);
// Begins a transaction in which the session's own connection reads a statement's rows.
std::string BeginReadingSession();
// `session` is the session's own connection, outside a transaction. An error names the state that
// cannot be replayed (0A000).
Result<CapturedSession> CaptureSession(PostgresConnection& session, const SettingNames& names);

// Settings that determine how values look as text. If all cells arrive as text (over TLS), or are
// copied as text into a table, a setting whose texts we cannot read back exactly is an error
// (0A000); `purpose` ends the message. Queries the server.
Status CheckReadableAsText(PostgresConnection& connection, std::string_view purpose);
// Whether all cells of `connection` arrive as text.
bool OnlyText(const PostgresConnection& connection);

// To be called before anything of the select runs on `connection`, which is in its initial state.
Status ReplaySession(PostgresConnection& connection, const SessionSettings& settings);

// 25001 or 25P02 inside a transaction: only its own connection sees its changes, and what we create
// would survive its ROLLBACK.
Status CheckNoPostgresTransaction(const PostgresConnection& session);

// Refuses a select that reads objects of `session` only: 0A000 with the name. Runs nothing of the
// select.
Status CheckNothingTemporary(PostgresConnection& session, std::string_view select);

void PutSession(const SessionSettings& settings, DatasetSpec* spec);
SessionSettings SessionOf(const DatasetSpec& spec);

}  // namespace sluice::catalog

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "catalog/embedded_session.h"
#include "catalog/sqlite/sqlite_connection_internal.h"
#include "catalog/sqlite/sqlite_guard_internal.h"
#include "catalog/sqlite/sqlite_place_internal.h"

namespace sluice::catalog {

// What an embedded session and its statements share; outlives the statements.
struct EmbeddedSessionParts {
  SqliteConnection& connection;
  SqliteGuard& guard;
  SqlitePlace& place;
  std::atomic<bool>& interrupted;  // set by EmbeddedSession::Interrupt
};

// `sql`: what was prepared. `written`: as the client wrote it, if that differs.
std::unique_ptr<EmbeddedStatement> MakeEmbeddedStatement(const EmbeddedSessionParts& session,
                                                         SqliteStatement statement, std::string sql,
                                                         std::optional<std::string_view> written);

Status InterruptedStatement();  // 57014

}  // namespace sluice::catalog

#pragma once

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

// What a session has to remember of a statement: PREPARE of ours, RESET ALL, DISCARD ALL and
// DEALLOCATE.
bool ChangesSession(const parser::PlainStatement& statement);

// Passes a statement unchanged to the database, and its rows to the sink. Places in errors are
// converted from the statement's text to the script's.
Status RunPlain(const parser::PlainStatement& statement, Session& session,
                executor::ResultSink& sink);

}  // namespace sluice::server

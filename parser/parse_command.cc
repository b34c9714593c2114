#include <utility>

#include "parser/cursor.h"
#include "parser/expression.h"
#include "parser/parse_statement.h"

// Statements without a query: models, jobs, settings.
namespace sluice::parser {
namespace {

Result<ExtendedStatement> ParseShow(Cursor& cursor) {
  using What = ShowStatement::What;
  ShowStatement statement;
  if (cursor.TryWord("MODELS")) {
    statement.what = What::kModels;
  } else if (cursor.TryWord("JOBS")) {
    statement.what = What::kJobs;
    if (cursor.TryWord("ALL")) {
      statement.all = true;
    } else if (cursor.TryWord("LIMIT")) {
      ASSIGN_OR_RETURN(statement.limit, cursor.TakeInteger("a number of jobs"));
    }
  } else if (cursor.TryWord("JOB")) {
    statement.what = What::kJob;
    ASSIGN_OR_RETURN(statement.job, cursor.TakeInteger("the job's number"));
  } else if (cursor.TryWord("CLUSTER")) {
    statement.what = What::kCluster;
  } else if (cursor.TryWord("TRAIN")) {
    statement.what = What::kTrain;
    ASSIGN_OR_RETURN(statement.model, cursor.TakeModelName());
  } else if (cursor.TryWord("MODEL")) {
    if (cursor.TryWord("TYPES")) {
      statement.what = What::kModelTypes;
    } else {
      statement.what = What::kModel;
      ASSIGN_OR_RETURN(statement.model, cursor.TakeModelName());
    }
  } else {
    return cursor.Unexpected("MODELS, MODEL, MODEL TYPES, TRAIN, JOBS, JOB or CLUSTER",
                             {"MODELS", "MODEL", "TRAIN", "JOBS", "JOB", "CLUSTER"});
  }
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseDescribe(Cursor& cursor) {
  DescribeStatement statement;
  RETURN_IF_ERROR(cursor.ExpectWord("MODEL"));
  if (cursor.AtEnd()) {
    return cursor.Unexpected("a model's name").Hint("SHOW MODELS lists the models");
  }
  const bool type = cursor.AtWord("TYPE") && cursor.Peek(1).kind != Token::Kind::kEnd;
  if (type) {
    cursor.Take();
    ASSIGN_OR_RETURN(statement.model_type, cursor.TakeName("a model type"));
  } else {
    ASSIGN_OR_RETURN(statement.model, cursor.TakeModelName());
  }
  return ExtendedStatement(std::move(statement));
}

// TYPE, where it is no model's name.
bool TryType(Cursor& cursor) {
  const Token& next = cursor.Peek(1);
  const bool name = next.kind == Token::Kind::kWord || next.kind == Token::Kind::kQuoted;
  return name && !next.IsWord("TO") && !next.IsWord("FROM") && cursor.TryWord("TYPE");
}

// IF EXISTS, unless IF is a name.
Result<bool> TryIfExists(Cursor& cursor) {
  if (!cursor.AtWord("IF") || cursor.Peek(1).kind != Token::Kind::kWord) {
    return false;
  }
  cursor.Take();
  RETURN_IF_ERROR(cursor.ExpectWord("EXISTS"));
  return true;
}

Result<ExtendedStatement> ParseDropModel(Cursor& cursor) {
  DropModelStatement statement;
  RETURN_IF_ERROR(cursor.ExpectWord("MODEL"));
  statement.type = TryType(cursor);
  ASSIGN_OR_RETURN(statement.if_exists, TryIfExists(cursor));
  ASSIGN_OR_RETURN(statement.model, cursor.TakeModelName());
  if (cursor.AtWord("VERSION")) {
    return cursor.Unexpected("the end of the statement")
        .Hint("a version follows the name: DROP MODEL my_model:2");
  }
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseAlter(Cursor& cursor) {
  AlterModelStatement statement;
  RETURN_IF_ERROR(cursor.ExpectWord("MODEL"));
  ASSIGN_OR_RETURN(statement.model, cursor.TakeModelName());
  if (cursor.TryWord("PROMOTE")) {
    ASSIGN_OR_RETURN(statement.promote, cursor.TakeInteger("the version's number"));
  } else if (cursor.TryWord("RENAME")) {
    RETURN_IF_ERROR(cursor.ExpectWord("TO"));
    ASSIGN_OR_RETURN(statement.rename, cursor.TakeModelName());
  } else if (!cursor.TryWord("ROLLBACK")) {
    return cursor.Unexpected("PROMOTE and a version, ROLLBACK, or RENAME TO and a name",
                             {"PROMOTE", "ROLLBACK", "RENAME"});
  }
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseModelGrant(Cursor& cursor, bool revoke) {
  ModelGrantStatement statement;
  statement.revoke = revoke;
  if (cursor.TryWord("ALL")) {
    cursor.TryWord("PRIVILEGES");
    statement.usage = statement.inspect = true;
  } else {
    do {
      if (cursor.TryWord("USAGE")) {
        statement.usage = true;
      } else if (cursor.TryWord("INSPECT")) {
        statement.inspect = true;
      } else {
        return cursor.Unexpected(
            "USAGE, INSPECT or ALL, which are what there is to give of a model",
            {"USAGE", "INSPECT", "ALL"});
      }
    } while (cursor.TrySymbol(","));
  }
  RETURN_IF_ERROR(cursor.ExpectWord("ON"));
  RETURN_IF_ERROR(cursor.ExpectWord("MODEL"));
  statement.type = TryType(cursor);
  ASSIGN_OR_RETURN(statement.model, cursor.TakeModelName());
  RETURN_IF_ERROR(cursor.ExpectWord(revoke ? "FROM" : "TO"));
  do {
    ASSIGN_OR_RETURN(Name role, cursor.TakeName("a role"));
    statement.roles.push_back(std::move(role));
  } while (cursor.TrySymbol(","));
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseExport(Cursor& cursor) {
  ExportModelStatement statement;
  RETURN_IF_ERROR(cursor.ExpectWord("MODEL"));
  ASSIGN_OR_RETURN(statement.model, cursor.TakeModelName());
  statement.overwrite = cursor.TryWord("OVERWRITE");
  if (!cursor.TryWord("TO")) {
    return statement.overwrite
               ? cursor.Unexpected("TO and a file", {"TO"})
               : cursor.Unexpected("TO and a file, or OVERWRITE", {"TO", "OVERWRITE"});
  }
  statement.file_span = cursor.Peek().span;
  ASSIGN_OR_RETURN(statement.file, cursor.TakeString("the name of a file as a string"));
  if (cursor.AtWord("OVERWRITE")) {
    return cursor.Unexpected("the end of the statement")
        .Hint("OVERWRITE stands before TO: EXPORT MODEL my_model OVERWRITE TO 'file'");
  }
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseImport(Cursor& cursor) {
  ImportModelStatement statement;
  RETURN_IF_ERROR(cursor.ExpectWord("MODEL"));
  RETURN_IF_ERROR(cursor.ExpectWord("FROM"));
  statement.file_span = cursor.Peek().span;
  ASSIGN_OR_RETURN(statement.file, cursor.TakeString("the name of a file as a string"));
  if (cursor.TryWord("INTO")) {
    ASSIGN_OR_RETURN(statement.into, cursor.TakeModelName());
  } else if (!cursor.AtEnd()) {
    return cursor.Unexpected("INTO and a model's name", {"INTO"});
  }
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseJob(Cursor& cursor, JobStatement::Action action) {
  JobStatement statement;
  statement.action = action;
  RETURN_IF_ERROR(cursor.ExpectWord("JOB"));
  if (action == JobStatement::Action::kDrop) {
    ASSIGN_OR_RETURN(statement.if_exists, TryIfExists(cursor));
  }
  ASSIGN_OR_RETURN(statement.job, cursor.TakeInteger("the job's number"));
  return ExtendedStatement(statement);
}

Result<ExtendedStatement> ParseSet(Cursor& cursor) {
  SetStatement statement;
  if (cursor.AtWord("SESSION")) {
    cursor.Take();
  }
  ASSIGN_OR_RETURN(statement.name, cursor.TakeName("a setting's name"));
  if (!cursor.TrySymbol("=") && !cursor.TryWord("TO")) {
    return cursor.Unexpected("'=' or TO");
  }
  ASSIGN_OR_RETURN(statement.value, ParseValue(cursor));
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseReset(Cursor& cursor) {
  SetStatement statement;
  statement.reset = true;
  statement.value.value = AttributeValue::Word{"DEFAULT"};
  ASSIGN_OR_RETURN(statement.name, cursor.TakeName("a setting's name"));
  statement.value.span = statement.name.span;
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseByFirstWord(Cursor& cursor) {
  const Token first = cursor.Take();
  if (first.IsWord("SHOW")) {
    return ParseShow(cursor);
  }
  if (first.IsWord("DESCRIBE") || first.IsWord("DESC")) {
    return ParseDescribe(cursor);
  }
  if (first.IsWord("DROP")) {
    return cursor.AtWord("JOB") ? ParseJob(cursor, JobStatement::Action::kDrop)
                                : ParseDropModel(cursor);
  }
  if (first.IsWord("ALTER")) {
    return ParseAlter(cursor);
  }
  if (first.IsWord("GRANT") || first.IsWord("REVOKE")) {
    return ParseModelGrant(cursor, first.IsWord("REVOKE"));
  }
  if (first.IsWord("EXPORT")) {
    return ParseExport(cursor);
  }
  if (first.IsWord("IMPORT")) {
    return ParseImport(cursor);
  }
  if (first.IsWord("CANCEL")) {
    return ParseJob(cursor, JobStatement::Action::kCancel);
  }
  if (first.IsWord("WAIT")) {
    return ParseJob(cursor, JobStatement::Action::kWait);
  }
  return first.IsWord("RESET") ? ParseReset(cursor) : ParseSet(cursor);
}

}  // namespace

Result<ExtendedStatement> ParseCommandPiece(std::string_view script, const Piece& piece) {
  Cursor cursor(script, piece.clauses);
  ASSIGN_OR_RETURN(ExtendedStatement statement, ParseByFirstWord(cursor));
  RETURN_IF_ERROR(cursor.ExpectEnd());
  return statement;
}

}  // namespace sluice::parser

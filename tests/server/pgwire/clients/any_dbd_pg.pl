# DBD::Pg at the PostgreSQL door, over either database.
use strict;
use warnings;
use DBI;
use DBD::Pg qw(:async);

my %login = map { split /=/ } split / /, $ARGV[0];
my @notices;
local $SIG{__WARN__} = sub { push @notices, @_ };
my $c = DBI->connect("dbi:Pg:host=$login{host};port=$login{port};dbname=$login{dbname};sslmode=require", $login{user}, '',
    {RaiseError => 1, PrintError => 0, PrintWarn => 1, AutoCommit => 1});
sub check { my ($right, $what) = @_; $right or do { print "wrong: $what\n"; exit 1 } }

check($c->ping > 0, 'ping');
my @tables = map { $_->[2] } @{$c->table_info('', 'public', '%', 'TABLE')->fetchall_arrayref};
check((grep { $_ eq 'points' } @tables), "tables @tables");
my %types = map { $_->[3] => $_->[5] } @{$c->column_info('', 'public', 'points', '%')->fetchall_arrayref};
check($types{x} eq 'double precision', 'column_info');

my $row = $c->selectrow_hashref(
    'SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3 LABEL y INTO by_dbd_pg');
check($row->{model} eq 'by_dbd_pg' && $row->{rows} == 300, 'train');
my $select = $c->prepare('SELECT x FROM points WHERE x <= ? ORDER BY x TO PREDICT USING by_dbd_pg');
for my $most (3, 2) {
    $select->execute($most);
    check(join(',', map { $_->[0] } @{$select->fetchall_arrayref}) eq join(',', 1 .. $most), "predict up to $most");
}
$c->do('CREATE TABLE by_dbd_pg_kinds (i BIGINT PRIMARY KEY, t TEXT)');
my $insert = $c->prepare('INSERT INTO by_dbd_pg_kinds VALUES (?, ?)');
$insert->execute($_, "t$_") for 1 .. 3;
check(join(',', $c->primary_key('', 'public', 'by_dbd_pg_kinds')) eq 'i', 'primary_key');
$c->do('COPY by_dbd_pg_kinds FROM STDIN');
$c->pg_putcopydata("4\tfour\n");
$c->pg_putcopyend;
check($c->selectrow_array("SELECT count(*) FROM by_dbd_pg_kinds WHERE t LIKE '%o%' OR i < 4") == 4, 'rows');
$c->begin_work;
$c->do('DELETE FROM by_dbd_pg_kinds');
$c->rollback;
check($c->selectrow_array('SELECT count(*) FROM by_dbd_pg_kinds') == 4, 'rollback');
$c->do('DROP TABLE by_dbd_pg_kinds');

eval { $c->do('SELECT * FROM points LABEL yy INTO m') };
check($c->state eq '42703' && $c->errstr =~ /'y'/, 'error ' . $c->state . ' ' . $c->errstr);
my $endless = $c->prepare('SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000'
    . ' LABEL y INTO m', {pg_async => PG_ASYNC});
$endless->execute;
sleep 1;
$endless->pg_cancel;
check($c->selectrow_array('SELECT 1') == 1, 'after a cancel');
print "ok\n";

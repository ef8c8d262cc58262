from pathlib import Path

import pytest

from scripts import readme_tables as tables

ROOT = Path(__file__).parents[2]
HEADER = "kernel,device_class,label,base,case,metric,value,unit,note\n"
LADDER = HEADER + (
    '# a comment is where the figures are from\nhgemm,h200,v1,,"m=64,n=64,k=64",time,2.0,us,\n'
    'hgemm,h200,v2,v1,"m=64,n=64,k=64",time,1.0,us,\nhgemm,h200,cublas,,"m=64,n=64,k=64",time,0.5,us,baseline\n'
    'hgemm,h200,v2,v1,"m=64,n=64,k=8",throughput_over_baseline,0.25,1,\nhgemm,h200,v2,v1,,shared_memory,32,KiB,\n'
)


def test_a_ladder_is_a_matrix_of_shares_of_the_baseline():
    source, (history,) = tables.read(LADDER)
    assert source == "a comment is where the figures are from"
    assert tables.table(history).splitlines() == [
        "| case | v1 | v2 | baseline |",
        "| --- | ---: | ---: | ---: |",
        "| 64^3 | 0.250 | 0.500 | cublas, 0.5 us |",
        "| 64x64x8 |  | 0.250 |  |",
    ]


def test_a_history_of_one_case_is_a_list_with_each_change_in_words():
    rows = "".join(
        f"attn,b300,{label},{base},case1,throughput,{value},TFLOPS,{note}\n"
        for label, base, value, note in [
            ("V1", "", 200, "first"),
            ("V2", "V1", 400, "twice as fast"),
            ("V3", "V2", 400, ""),
            ("sdpa", "", 800, "baseline"),
        ]
    )
    _, (history,) = tables.read(HEADER + rows)
    table = tables.table(history)
    assert "| V2 | 400.0 | 0.500 | V1 | 50 % faster | twice as fast |" in table
    assert "| V3 | 400.0 | 0.500 | V2 | the same |  |" in table
    assert "baseline sdpa, 800 TFLOPS" in table


def test_only_what_stands_between_the_markers_is_rewritten():
    before = f"# Title\n{tables.BEGIN}\nold\n{tables.END}\nrest\n"
    after = tables.rewrite(before, ["new"])
    assert after == f"# Title\n{tables.BEGIN}\n\nnew\n\n{tables.END}\nrest\n"
    with pytest.raises(ValueError, match="lacks"):
        tables.rewrite("no markers", ["new"])


def test_a_file_of_other_columns_is_refused():
    with pytest.raises(ValueError, match="columns are"):
        tables.read("a,b\n1,2\n")


def test_the_readme_shows_what_the_data_say():
    files = tables.history_files(ROOT / "data")
    assert "published_history.csv" in {file.name for file in files}
    written = tables.rewrite((ROOT / "README.md").read_text(), tables.results(files))
    assert written == (ROOT / "README.md").read_text(), "run scripts/readme_tables.py"

"""Projections and centroids trained on a task's attention graphs, and the recall of predicted graphs."""

from collections.abc import Iterator

from replication.run.places import graph_task, graph_task_names
from replication.steps.predictors import fitted_to
from replication.steps.step import Declaring, Step


def graph_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps of every task whose attention graphs are predicted."""
    seeds = at.run.student_seeds
    for place in graph_task_names(at.run):
        section, files, layers = graph_task(at.run, place)
        base, depth = place.split("/")[0], "architecture" if "/" in place else "layers"
        of_all = at.see("", "student_seeds") | at.see(base, depth)
        projections, centroids = ([folder(seed) for seed in seeds] for folder in (files.projections, files.centroids))
        graphs = {split: [files.graphs(split, layer) for layer in range(layers)] for split in ("train", "valid")}
        yield Step(
            command="project",
            message=f"Train the projections of {place}",
            place=place,
            reads=graphs["train"],
            folders=projections,
            sees=of_all | at.see(base, "projection"),
            priority=1,
        )
        grid = {name: method for name, method in section.methods.items() if hasattr(method, "clusters")}
        counts = {name: {"predictor": method.predictor, "clusters": method.clusters} for name, method in grid.items()}
        yield Step(
            command="cluster",
            message=f"Train the centroids of {place}",
            place=place,
            reads=[*graphs["train"], *projections],
            folders=centroids,
            sees=of_all | at.see(base, "cluster_points") | {f"{base}/methods": counts},
            predictors={method.predictor for method in grid.values()},
            priority=1,
        )
        for name, method in section.methods.items():
            yield Step(
                command="sweep",
                message=f"Measure recall and sparsity of {name}, {place}",
                place=place,
                options={"method": name},
                reads=[
                    *fitted_to(graphs["train"], [method.predictor]),
                    *graphs["valid"],
                    *projections,
                    *(centroids if name in grid else []),
                ],
                makes=[files.sweep(name)],
                sees=of_all | at.see(base, "windows", "global_tokens") | at.see(f"{base}/methods", name),
                predictors={method.predictor},
            )

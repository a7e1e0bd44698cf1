"""Small good files in the formats of others, each with what its manual shows."""

from __future__ import annotations

import json

_ATTEMPT = {
    "start_time": "2017-10-07 01:01:00",
    "end_time": "2017-10-07 01:03:00",
    "detail": [{"ip": "m0", "gpus": ["gpu0", "gpu1"]}, {"ip": "m1", "gpus": ["gpu0"]}],
}
_PHILLY = [
    {
        "status": status, "vc": "ee9e8c", "jobid": f"application_{n}", "attempts": [_ATTEMPT] * n,
        "submitted_time": "2017-10-07 01:00:00", "user": "ce2f4c",
    }
    for n, status in enumerate(("Pass", "Failed", "Killed"), start=1)
]  # fmt: skip
TRACES = {
    "philly": json.dumps(_PHILLY, indent=1),
    "philly-csv": "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-09 07:01:55,66.0,1,66,a\n2017-10-10 07:01:55,5,8,40,b\n",
    "elasticflow": "job_id,submit_time,num_gpu,duration,model_name,ddl\na,0,1,9,vgg,5\n",
    "muri": "job_id,num_gpu,submit_time,duration,model_name\na,1,0,90000,vgg\n",
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,"
    "duration,queue\n"
    "1,u,vcA,1,1,1,COMPLETED,2020-06-09 18:41:00,2020-06-09 18:41:01,2020-06-09 18:45:01,240,1\n"
    "2,u,vcA,8,1,1,FAILED,2020-06-09 18:41:00,2020-06-09 18:41:01,2020-06-09 18:45:01,240,1\n",
    "acme": "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,"
    "duration,queue,gpu_time\na,u,1,8,9,T,FAILED,2023-05-17 11:01:08+00:00,"
    "2023-05-17 11:01:08+00:00,2023-05-18,1,1,1\n",
    "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\np0,1,1,1,1000,,LS,Running,10,1000,20\n"
    "p2,1,1,8,1000,V100M32,LS,Failed,50,60,50\np3,1,1,2,1000,,LS,Pending,60,1000,\n",
    "pal": "workload,job_id,num_gpus,submit_time,iterations,model,pal_class,iter_time_s\n"
    "1,0,4,98,1481.0,vgg19,C,0.5\n1,1,12,90,10,DCGAN,B,2\n",
    "pollux": "name,time,application,num_replicas,batch_size\n"
    "bert-0,110,bert,1,12\ncifar10-1,100,cifar10,2,2048\n",
    "slurm": "JobID|JobName|Partition|Account|State|Submit|Start|Elapsed|AllocTRES\n"
    "1|train|gpu|lab|NODE_FAIL|2024-01-01T10:00:00|2024-01-01T10:01:00|00:10:00|gres/gpu=2\n"
    "1|train|gpu|lab|FAILED|2024-01-01T10:00:00|2024-01-01T10:01:00|1-00:00:00|gres/gpu=2\n"
    "2|train|gpu|lab|COMPLETED|2024-11-03T01:30:00|2024-11-03T01:40:00|00:10:00|gres/gpu:a100=4\n",
    "gavel": 'LM\tpython3 x.py "a\t.\t--n\t1\t100\t1\t1\t-1.000000\t7\n' * 2,
}
THROUGHPUTS = json.dumps(
    {"v100": {
        "('LM', 1)": {"null": 4.0, "('A', 1)": [1.0, 2.0]},
        "('A', 1)": {"null": 2.0, "('LM', 1)": [2.0, 1.0]}}}
)  # fmt: skip
_EDGES = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)]
_KINDS = [("cluster", 2), ("rack", 1), ("rack", 1), ("node", 0), ("node", 0), ("node", 0)]
TOPOLOGIES = {
    ("slurm", ".conf"): "# tree\nSwitchName=s0 Nodes=dev[0-1,05] LinkSpeed=900\n"
    'SwitchName=s1 Nodes="dev[6-7]"\nSwitchName=s2 \\\n  Nodes=r[0-1]n[08-10]\n'
    "SwitchName=s3 Switches=s[0-2]\n",
    ("slurm", "-blocks.conf"): "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\n"
    "BlockName=b3\nBlockSizes=4,8,16\n",
    ("slurm", ".yaml"): "- topology: topo1\n  cluster_default: true\n  block:\n"
    "    block_sizes: [2, 4]\n    blocks:\n      - block: b1\n        nodes: node[01-02]\n"
    '      - block: b2\n        nodes: "node[03-04]"\n- topology: topo2\n  tree:\n'
    "    switches:\n      - switch: root\n        children: s[1-2]\n      - switch: s1\n"
    "        nodes: a[1-2]\n      - switch: s2\n        nodes: a3\n",
    ("slurm", ".txt"): "SwitchName=root Level=1 LinkSpeed=1 Nodes=n[0-5] Switches=leaf[0-1]\n"
    "SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=n[0-2]\n"
    "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[3-5]\n",
    ("topograph", ".json"): json.dumps(
        {"instances": [
            {"id": f"i{n}", "network_layers": [f"leaf{n // 2}", "spine"], "labels": {
                "accelerator.topograph.run/domain": f"nvl{n // 2}"}} for n in range(4)]}
    ),
    ("node-link", ".json"): json.dumps(
        {"directed": True, "multigraph": False, "graph": {}, "nodes": [
            {"id": n, "level": level, "height": height, "kind": "domain", "capacity": 4}
            for n, (level, height) in enumerate(_KINDS)],
         "edges": [{"source": a, "target": b} for a, b in _EDGES]}
    ),
    ("node-link", "-net.json"): json.dumps(
        {"directed": False, "multigraph": False, "graph": {}, "nodes": [
            {"id": n, "kind": "node" if n > 2 else "switch"} | ({"capacity": 4} if n > 2 else {})
            for n in range(6)],
         "edges": [{"source": a, "target": b, "bandwidth": 100 * (a + 1)} for a, b in _EDGES]}
    ),
    ("graphml", ".graphml"): '<?xml version="1.0"?><graphml '
    'xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d0" for="node" attr.name="level" '
    'attr.type="string"/><key id="d1" for="node" attr.name="capacity" attr.type="int"/>'
    '<graph edgedefault="directed"><node id="all"><data key="d0">cluster</data></node>'
    '<node id="a"><data key="d0">node</data><data key="d1">4</data></node>'
    '<edge source="all" target="a"/></graph></graphml>',
    ("labels", ".csv"): "node,gpus,rack,block\nn0,2,r1,b1\nn1,1,r1,b1\nn2,2,r1,b2\n\nn3,0,,b2\n",
    ("nvidia-smi", ".log"): "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m\n"
    "GPU0\t X \tNV2\tPHB\tPIX\t0-23\nGPU1\tNV2\t X \tSYS\tNODE\t0-23\n"
    "GPU2\tPHB\tSYS\t X \tSYS\t24-47\nNIC0\tPIX\tNODE\tSYS\t X\n\nLegend:\n\n  X    = Self\n",
}  # fmt: skip
PROFILE = "gpu,node,V_A,V_B,bin_A\ng0,n0,1.0,1.01,0\ng1,n0,0.97,1.2,1\n"
